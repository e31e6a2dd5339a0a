//! One virtual server as the agent's program tells it: `render -o json` without a kernel, `status -o json` on a node.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use serde::Deserialize;

/// A virtual server and its endpoints, as one node sees them.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct View {
    service: String,
    address: IpAddr,
    port: u16,
    policy: Policy,
    real_servers: Vec<Endpoint>,
    excluded: Vec<Endpoint>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Told {
    virtual_servers: Vec<View>,
}

#[derive(Debug, Clone, Deserialize)]
struct Policy {
    words: String,
    levels: Vec<Level>,
}

#[derive(Debug, Clone, Deserialize)]
struct Level {
    #[serde(rename = "level")]
    name: String,
    /// Endpoints in it that take connections.
    usable: u32,
    /// Its share once empty levels have given theirs away, 0 to 1.
    share: f64,
}

/// One endpoint, chosen or not.
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
    /// Every virtual server in what the program told.
    ///
    /// # Errors
    /// When the program's JSON is another than these fields are read from.
    pub fn all(told: &[u8]) -> serde_json::Result<Vec<Self>> {
        Ok(serde_json::from_slice::<Told>(told)?.virtual_servers)
    }

    /// The virtual address and port.
    pub fn target(&self) -> SocketAddr {
        SocketAddr::new(self.address, self.port)
    }

    /// The Service, `namespace/name`.
    pub fn service(&self) -> &str {
        &self.service
    }

    /// The policy in words.
    pub fn policy(&self) -> &str {
        &self.policy.words
    }

    /// Chosen endpoints first, nearest level first, then those that are out.
    pub fn endpoints(&self) -> impl Iterator<Item = &Endpoint> {
        self.real_servers.iter().chain(&self.excluded)
    }

    /// The share of new connections that the policy wants for `endpoint`, 0 to 1; not what its
    /// weight gives, which is what the demo is to show.
    pub fn wanted(&self, endpoint: &Endpoint) -> f64 {
        let Some(name) = endpoint.level.as_deref().filter(|_| endpoint.weight > 0) else {
            return 0.0;
        };
        let levels = &self.policy.levels;
        levels
            .iter()
            .find(|level| level.name == name)
            .map_or(0.0, |level| level.share / f64::from(level.usable.max(1)))
    }

    /// The weights that the kernel is to hold.
    pub fn weights(&self) -> BTreeMap<SocketAddr, u32> {
        self.real_servers
            .iter()
            .filter(|endpoint| endpoint.weight > 0)
            .map(|endpoint| (endpoint.address(), endpoint.weight))
            .collect()
    }

    /// The endpoints on the node `name`.
    pub fn on(&self, name: &str) -> Vec<SocketAddr> {
        self.pick(|endpoint| endpoint.node() == name)
    }

    /// The endpoints in the zone `name`.
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
    /// Address and port.
    pub fn address(&self) -> SocketAddr {
        SocketAddr::new(self.address, self.port)
    }

    /// Its node's name.
    pub fn node(&self) -> &str {
        self.node.as_deref().unwrap_or_default()
    }

    /// Its zone's name.
    pub fn zone(&self) -> &str {
        self.zone.as_deref().unwrap_or_default()
    }

    /// The level that took it in.
    pub fn level(&self) -> Option<&str> {
        self.level.as_deref()
    }
}
