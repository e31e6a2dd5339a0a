//! What the example asks of this node, as `ipvs-topo render -o json` says without a kernel.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::process::Command;

use anyhow::{Context, bail};
use serde::Deserialize;

use super::world;

/// The one virtual server of the example.
pub(super) struct View {
    server: VirtualServer,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Rendered {
    virtual_servers: Vec<VirtualServer>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct VirtualServer {
    service: String,
    address: IpAddr,
    port: u16,
    policy: Policy,
    real_servers: Vec<Endpoint>,
    excluded: Vec<Endpoint>,
}

#[derive(Deserialize)]
struct Policy {
    words: String,
    levels: Vec<Level>,
}

#[derive(Deserialize)]
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
pub(super) struct Endpoint {
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
    /// Asks the agent's program about the cluster in `folder`.
    pub(super) fn render(folder: &Path) -> anyhow::Result<Self> {
        let done = Command::new("ipvs-topo")
            .args(["render", "--node", world::HERE, "-o", "json", "--cluster"])
            .arg(folder)
            .output()
            .context("cannot start `ipvs-topo render`")?;
        if !done.status.success() {
            bail!(
                "`ipvs-topo render`: {}",
                String::from_utf8_lossy(&done.stderr)
            );
        }
        let rendered: Rendered =
            serde_json::from_slice(&done.stdout).context("`ipvs-topo render -o json` changed")?;
        let mut servers = rendered.virtual_servers.into_iter();
        match (servers.next(), servers.next()) {
            (Some(server), None) => Ok(Self { server }),
            _ => bail!("the demo needs an example with exactly one virtual server"),
        }
    }

    /// The virtual address and port.
    pub(super) fn target(&self) -> SocketAddr {
        SocketAddr::new(self.server.address, self.server.port)
    }

    /// The Service, `namespace/name`.
    pub(super) fn service(&self) -> &str {
        &self.server.service
    }

    /// The policy in words.
    pub(super) fn policy(&self) -> &str {
        &self.server.policy.words
    }

    /// Chosen endpoints first, nearest level first, then those that are out.
    pub(super) fn endpoints(&self) -> impl Iterator<Item = &Endpoint> {
        self.server.real_servers.iter().chain(&self.server.excluded)
    }

    /// The share of new connections that the policy wants for `endpoint`, 0 to 1; not what its
    /// weight gives, which is what the demo is to show.
    pub(super) fn wanted(&self, endpoint: &Endpoint) -> f64 {
        let Some(name) = endpoint.level.as_deref().filter(|_| endpoint.weight > 0) else {
            return 0.0;
        };
        let levels = &self.server.policy.levels;
        levels
            .iter()
            .find(|level| level.name == name)
            .map_or(0.0, |level| level.share / f64::from(level.usable.max(1)))
    }

    /// The weights that the kernel is to hold.
    pub(super) fn weights(&self) -> BTreeMap<SocketAddr, u32> {
        self.server
            .real_servers
            .iter()
            .filter(|endpoint| endpoint.weight > 0)
            .map(|endpoint| (endpoint.address(), endpoint.weight))
            .collect()
    }

    /// The endpoints on the node `name`.
    pub(super) fn on(&self, name: &str) -> Vec<SocketAddr> {
        self.pick(|endpoint| endpoint.node() == name)
    }

    /// The endpoints in the zone `name`.
    pub(super) fn in_zone(&self, name: &str) -> Vec<SocketAddr> {
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
    pub(super) fn address(&self) -> SocketAddr {
        SocketAddr::new(self.address, self.port)
    }

    /// Its node's name.
    pub(super) fn node(&self) -> &str {
        self.node.as_deref().unwrap_or_default()
    }

    /// Its zone's name.
    pub(super) fn zone(&self) -> &str {
        self.zone.as_deref().unwrap_or_default()
    }

    /// The level that took it in.
    pub(super) fn level(&self) -> Option<&str> {
        self.level.as_deref()
    }
}
