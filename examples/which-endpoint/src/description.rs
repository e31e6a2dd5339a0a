//! Reads the description of a cluster.

use std::collections::BTreeMap;
use std::num::NonZeroU16;

use serde::Deserialize;

/// Nodes, a Service and its endpoints.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Description {
    pub(crate) nodes: Vec<NodeEntry>,
    pub(crate) service: ServiceDescription,
    pub(crate) endpoints: Vec<EndpointEntry>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NodeEntry {
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) labels: BTreeMap<String, String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ServiceDescription {
    /// `namespace/name`.
    pub(crate) name: String,
    pub(crate) address: String,
    pub(crate) port: NonZeroU16,
    #[serde(default)]
    pub(crate) protocol: Transport,
    /// Annotations without their prefix.
    #[serde(default)]
    pub(crate) policy: BTreeMap<String, String>,
}

#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub(crate) enum Transport {
    #[default]
    Tcp,
    Udp,
    Sctp,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct EndpointEntry {
    pub(crate) address: String,
    pub(crate) port: NonZeroU16,
    pub(crate) node: String,
    #[serde(default = "yes")]
    pub(crate) ready: bool,
}

const fn yes() -> bool {
    true
}

/// Parses `text`; the error quotes the line and lists what is allowed there.
pub(crate) fn parse(text: &str) -> anyhow::Result<Description> {
    toml::from_str(text).map_err(|error| {
        let error = error.to_string();
        anyhow::anyhow!(
            "{}\ncorrect it; cart.toml shows every key",
            error.trim_end()
        )
    })
}
