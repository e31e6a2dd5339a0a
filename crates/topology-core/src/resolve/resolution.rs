//! The result of resolving a Service.

use std::sync::Arc;

use super::decision::Decision;
use super::finding::Finding;
use crate::memory::{Memory, ServerMemory};
use crate::model::{FrontendKind, ObjectName};
use crate::snapshot::FrontendKey;
use crate::virtual_server::{VirtualServer, VirtualServerKey};

/// The result of resolving a Service for one node.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Resolution {
    /// Virtual servers, by port and then by address, in the order of the Service.
    pub servers: Vec<ResolvedServer>,
    /// Problems for the Service's owner.
    pub findings: Vec<Finding>,
    /// When to resolve again without a change of the input, in milliseconds since 1970.
    pub resolve_again_at: Option<i64>,
}

/// A virtual server and its decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResolvedServer {
    /// Namespace and name of the Service.
    pub service: ObjectName,
    /// The name of the Service port; empty if it has none.
    pub port_name: Arc<str>,
    /// The kind of the address that it serves.
    pub kind: FrontendKind,
    /// The desired state of the kernel.
    pub server: VirtualServer,
    /// The clients that it serves.
    pub clients: Clients,
    /// The frontends whose outside clients it serves, if its key is a firewall mark.
    pub marked: Vec<FrontendKey>,
    /// The explanation.
    pub decision: Decision,
    /// What the next decision needs to know of this one; see [`Memory::store`].
    pub memory: Option<Arc<ServerMemory>>,
}

impl ResolvedServer {
    /// The name of the port by which it takes endpoints from slices; `None` if it stands for the name of a headless
    /// Service, which has the endpoints of all ports.
    pub const fn port_of_slices(&self) -> Option<&Arc<str>> {
        match self.server.key {
            VirtualServerKey::Address { port: 0, .. } => None,
            VirtualServerKey::Address { .. } | VirtualServerKey::FirewallMark { .. } => {
                Some(&self.port_name)
            }
        }
    }
}

/// The clients of a virtual server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Clients {
    /// All clients of its address.
    All,
    /// Clients inside the cluster; a firewall mark serves the others.
    Inside,
    /// Clients outside of the cluster.
    Outside,
}

impl Clients {
    /// The value in output.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Inside => "inside",
            Self::Outside => "outside",
        }
    }
}

impl Memory {
    /// Stores what `resolution` of `service` asks to keep, and removes the rest about the Service.
    pub fn store(&mut self, service: &ObjectName, resolution: &Resolution) {
        let kept = resolution.servers.iter().filter_map(|resolved| {
            let memory = Arc::clone(resolved.memory.as_ref()?);
            Some((resolved.server.key, memory))
        });
        self.set(service, kept.collect());
    }

    /// Stores what `resolution` of a part of `service` asks to keep, and keeps the rest about the Service.
    pub fn store_part(&mut self, service: &ObjectName, resolution: &Resolution) {
        for resolved in &resolution.servers {
            let memory = resolved.memory.clone();
            self.set_server(service, resolved.server.key, memory);
        }
    }
}
