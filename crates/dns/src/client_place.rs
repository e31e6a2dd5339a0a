//! Places a client on a Node, by its address.

use std::net::IpAddr;
use std::sync::Arc;

use topology_core::address_index::AddressIndex;
use topology_core::model::Node;
use topology_core::snapshot::Snapshot;

use crate::placement_rule::PlacementRule;

/// The Node of a client, and the rule that found it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientPlace {
    pub node: Arc<str>,
    pub rule: PlacementRule,
}

impl ClientPlace {
    /// Places a client of a server on `server_node`: on that Node if it has the client, so that no other object moves
    /// the clients that the server is there for.
    pub fn find(
        snapshot: &Snapshot,
        addresses: &AddressIndex,
        server_node: &Arc<str>,
        client: IpAddr,
    ) -> Self {
        let own = snapshot.node(server_node);
        if own.is_some_and(|own| has_client(own, client)) {
            return Self::at(server_node, PlacementRule::ServerNode);
        }
        match addresses.locate(snapshot, client) {
            Some(location) => Self::at(location.node_name, location.source.into()),
            None => Self::at(server_node, PlacementRule::Unknown),
        }
    }

    fn at(node: &Arc<str>, rule: PlacementRule) -> Self {
        Self {
            node: Arc::clone(node),
            rule,
        }
    }
}

fn has_client(node: &Node, client: IpAddr) -> bool {
    let mut ranges = node.pod_cidrs.iter();
    node.addresses.contains(&client) || ranges.any(|range| range.contains(client))
}
