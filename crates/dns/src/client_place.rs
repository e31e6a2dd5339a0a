//! Places a client on a Node, by its address.

use std::net::IpAddr;
use std::sync::Arc;

use topology_core::snapshot::Snapshot;

use crate::address_index::AddressIndex;
use crate::client_nodes::ClientNodes;
use crate::placement_rule::PlacementRule;

/// The Node of a client, and the rule that found it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientPlace {
    pub node: Arc<str>,
    pub rule: PlacementRule,
}

impl ClientPlace {
    /// Places one client of a server on `server_node`.
    pub fn find(snapshot: &Snapshot, server_node: &Arc<str>, client: IpAddr) -> Self {
        let mut endpoints = AddressIndex::default();
        for service in snapshot.services() {
            endpoints.update(snapshot, &service.name);
        }
        let nodes = ClientNodes::of(snapshot, server_node);
        Self::of(&nodes, &endpoints, server_node, client)
    }

    pub(crate) fn of(
        nodes: &ClientNodes,
        endpoints: &AddressIndex,
        server_node: &Arc<str>,
        client: IpAddr,
    ) -> Self {
        let by_endpoint = || Some((endpoints.node_of(client)?, PlacementRule::Endpoint));
        let found = nodes.node_of(client).or_else(by_endpoint);
        let (node, rule) = found.unwrap_or((server_node, PlacementRule::Unknown));
        Self {
            node: Arc::clone(node),
            rule,
        }
    }
}
