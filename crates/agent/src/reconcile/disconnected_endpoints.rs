//! Keeps the endpoints of this node whose servers closed their connections to the agent.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

use topology_core::model::{Endpoint, EndpointSlice, ObjectName};
use topology_core::snapshot::Snapshot;

use crate::endpoint_connections::EndpointConnections;

/// The endpoints, and the connections of servers.
#[derive(Debug, Default)]
pub(super) struct DisconnectedEndpoints {
    connections: EndpointConnections,
    /// With the Services whose EndpointSlices say that the endpoint is usable.
    services: BTreeMap<SocketAddr, BTreeSet<ObjectName>>,
}

impl DisconnectedEndpoints {
    pub(super) fn new(connections: EndpointConnections) -> Self {
        Self {
            connections,
            services: BTreeMap::new(),
        }
    }

    pub(super) const fn connections(&self) -> &EndpointConnections {
        &self.connections
    }

    pub(super) fn endpoints(&self) -> BTreeSet<SocketAddr> {
        self.services.keys().copied().collect()
    }

    /// Takes over the endpoints whose connections `ended`, and the conditions of `changed` Services. Returns the Services
    /// of endpoints that were added or removed.
    pub(super) fn update(
        &mut self,
        ended: &BTreeSet<SocketAddr>,
        changed: &BTreeSet<ObjectName>,
        snapshot: &Snapshot,
        node: &str,
    ) -> BTreeSet<ObjectName> {
        let is_usable = |server: SocketAddr, service: &ObjectName| {
            let slices = snapshot.slices(service).iter();
            let mut slices = slices.filter(|_| snapshot.service(service).is_some());
            slices.any(|slice| has_usable(slice, server, node))
        };
        let mut affected = BTreeSet::new();
        self.services.retain(|server, services| {
            let is_kept = ended.contains(server);
            if !is_kept {
                affected.append(services);
            }
            is_kept
        });
        for &server in ended {
            let known = self.services.remove(&server);
            let is_new = known.is_none();
            let has_it = |service: &&ObjectName| is_usable(server, service);
            let services: BTreeSet<ObjectName> = if let Some(known) = known {
                known.union(changed).filter(has_it).cloned().collect()
            } else {
                let all = snapshot.services().map(|service| &service.name);
                all.filter(has_it).cloned().collect()
            };
            if is_new {
                affected.extend(services.iter().cloned());
            }
            if !services.is_empty() {
                self.services.insert(server, services);
            }
        }
        affected
    }
}

/// Whether the slice has a usable endpoint at `server` on the node.
fn has_usable(slice: &EndpointSlice, server: SocketAddr, node: &str) -> bool {
    let is_usable = |endpoint: &Endpoint| {
        endpoint.address == server.ip()
            && endpoint.node.as_deref() == Some(node)
            && endpoint.is_usable()
    };
    slice
        .ports
        .iter()
        .any(|port| port.port.get() == server.port())
        && slice.endpoints.iter().any(is_usable)
}
