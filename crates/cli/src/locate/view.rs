//! The JSON of `locate`, from which its text is built.
//!
//! Scripts depend on it: fields are added, never renamed or removed.

use std::collections::BTreeMap;
use std::net::IpAddr;

use agent_api::view::WarningView;
use serde::Serialize;

/// `locate -o json`: where an address is.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LocationView {
    pub address: IpAddr,
    pub node: String,
    /// `namespace/name` of the Pod, if a PodMap has the address.
    pub pod: Option<String>,
    /// The labels of the Node; absent if the input does not have the Node.
    pub labels: Option<BTreeMap<String, String>>,
    /// The object that says so: `podRange`, `podMap`, `nodeAddress` or `endpoint`.
    pub source: String,
    /// The range of `podRange`.
    pub range: Option<String>,
    /// `namespace/name` of the Service of `endpoint`.
    pub service: Option<String>,
    /// The source as text.
    pub words: String,
    /// Warnings about files, Nodes, PodMaps and EndpointSlices of the input.
    pub warnings: Vec<WarningView>,
}
