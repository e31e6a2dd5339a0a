//! Parses the virtual servers in the output of `ipvs-topo render -o json` and `ipvs-topo status -o json`, and the DNS
//! answers in that of `ipvs-topo explain --dns -o json`.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use serde::Deserialize;

/// A virtual server and its endpoints on one node.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct View {
    service: String,
    address: IpAddr,
    port: u16,
    policy: PolicyText,
    real_servers: Vec<Endpoint>,
    excluded: Vec<Endpoint>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct JsonOutput {
    virtual_servers: Vec<View>,
}

#[derive(Debug, Clone, Deserialize)]
struct PolicyText {
    words: String,
    levels: Vec<Level>,
}

#[derive(Debug, Clone, Deserialize)]
struct Level {
    #[serde(rename = "level")]
    name: String,
    /// Endpoints of this level that accept connections.
    usable: u32,
    /// Its share after the shares of empty levels are distributed, 0 to 1.
    share: f64,
}

impl PolicyText {
    /// Returns the share that the policy gives `endpoint`, 0 to 1.
    fn wanted(&self, endpoint: &Endpoint) -> f64 {
        let Some(name) = endpoint.level.as_deref().filter(|_| endpoint.weight > 0) else {
            return 0.0;
        };
        let mut levels = self.levels.iter();
        levels
            .find(|level| level.name == name)
            .map_or(0.0, |level| level.share / f64::from(level.usable.max(1)))
    }
}

/// The endpoints in the answers to a question for a headless Service.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AnswerView {
    service: String,
    policy: PolicyText,
    real_servers: Vec<Endpoint>,
}

#[derive(Deserialize)]
struct ExplainedName {
    answers: Vec<ExplainedAnswer>,
}

#[derive(Deserialize)]
struct ExplainedAnswer {
    decision: AnswerView,
}

impl AnswerView {
    /// Parses the answers for each type of record.
    ///
    /// # Errors
    /// If the JSON does not have these fields.
    pub fn all(output: &[u8]) -> serde_json::Result<Vec<Self>> {
        let answers = serde_json::from_slice::<ExplainedName>(output)?.answers;
        Ok(answers.into_iter().map(|answer| answer.decision).collect())
    }

    /// Returns `namespace/name` of the Service.
    pub fn service(&self) -> &str {
        &self.service
    }

    /// Returns the policy as text.
    pub fn policy(&self) -> &str {
        &self.policy.words
    }

    /// Returns the selected endpoints, nearest level first.
    pub fn endpoints(&self) -> &[Endpoint] {
        &self.real_servers
    }

    /// Returns the share of answers that begin with `endpoint`, 0 to 1.
    pub fn wanted(&self, endpoint: &Endpoint) -> f64 {
        self.policy.wanted(endpoint)
    }
}

/// One endpoint, selected or not.
#[derive(Debug, Clone, Deserialize)]
pub struct Endpoint {
    address: IpAddr,
    port: u16,
    #[serde(default)]
    node: Option<String>,
    #[serde(default)]
    zone: Option<String>,
    #[serde(default)]
    level: Option<String>,
    #[serde(default)]
    weight: u32,
}

impl View {
    /// Parses every virtual server.
    ///
    /// # Errors
    /// If the JSON does not have these fields.
    pub fn all(output: &[u8]) -> serde_json::Result<Vec<Self>> {
        Ok(serde_json::from_slice::<JsonOutput>(output)?.virtual_servers)
    }

    pub fn target(&self) -> SocketAddr {
        SocketAddr::new(self.address, self.port)
    }

    /// Returns `namespace/name` of the Service.
    pub fn service(&self) -> &str {
        &self.service
    }

    /// Returns the policy as text.
    pub fn policy(&self) -> &str {
        &self.policy.words
    }

    /// Returns selected endpoints, nearest level first, then excluded ones.
    pub fn endpoints(&self) -> impl Iterator<Item = &Endpoint> {
        self.real_servers.iter().chain(&self.excluded)
    }

    /// Returns the share of new connections that the policy gives `endpoint`, 0 to 1. The weight is not used: the demo
    /// verifies it.
    pub fn wanted(&self, endpoint: &Endpoint) -> f64 {
        self.policy.wanted(endpoint)
    }

    /// Returns the weights that the kernel should hold, without those of 0.
    pub fn weights(&self) -> BTreeMap<SocketAddr, u32> {
        self.real_servers
            .iter()
            .filter(|endpoint| endpoint.weight > 0)
            .map(|endpoint| (endpoint.address(), endpoint.weight))
            .collect()
    }

    pub fn on(&self, name: &str) -> Vec<SocketAddr> {
        self.pick(|endpoint| endpoint.node() == name)
    }

    pub fn in_zone(&self, name: &str) -> Vec<SocketAddr> {
        self.pick(|endpoint| endpoint.zone() == name)
    }

    fn pick(&self, wanted: impl Fn(&Endpoint) -> bool) -> Vec<SocketAddr> {
        self.endpoints()
            .filter(|endpoint| wanted(endpoint))
            .map(Endpoint::address)
            .collect()
    }
}

impl Endpoint {
    pub fn address(&self) -> SocketAddr {
        SocketAddr::new(self.address, self.port)
    }

    pub fn node(&self) -> &str {
        self.node.as_deref().unwrap_or_default()
    }

    pub fn zone(&self) -> &str {
        self.zone.as_deref().unwrap_or_default()
    }

    /// Returns the level that selected it.
    pub fn level(&self) -> Option<&str> {
        self.level.as_deref()
    }
}
