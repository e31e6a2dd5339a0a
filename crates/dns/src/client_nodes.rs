//! Finds the Node of a client by its address.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use topology_core::model::{IpNetwork, Node, range_around};
use topology_core::snapshot::Snapshot;

use crate::placement_rule::PlacementRule;

/// The addresses and the pod ranges of Nodes.
#[derive(Debug, Default)]
pub(crate) struct ClientNodes {
    own: Option<Node>,
    addresses: FxHashMap<IpAddr, Arc<str>>,
    /// By length of the prefix.
    ranges: BTreeMap<u8, FxHashMap<IpNetwork, Arc<str>>>,
}

impl ClientNodes {
    /// Of several Nodes with one address or range, the first by name gets it.
    pub(crate) fn of(snapshot: &Snapshot, own_node: &str) -> Self {
        let mut nodes: Vec<_> = snapshot.nodes().collect();
        nodes.sort_unstable_by(|one, other| other.name.cmp(&one.name));
        let mut found = Self {
            own: snapshot.node(own_node).cloned(),
            ..Self::default()
        };
        for node in nodes {
            for address in &node.addresses {
                found.addresses.insert(*address, Arc::clone(&node.name));
            }
            for range in &node.pod_cidrs {
                let of_length = found.ranges.entry(range.prefix()).or_default();
                of_length.insert(*range, Arc::clone(&node.name));
            }
        }
        found
    }

    /// The Node with the client: the server's own, or else the one with the smallest pod range around the address, or
    /// with this address. A kubelet writes the addresses of its Node, so it must not claim the clients of the server's
    /// node, nor pods of other nodes.
    pub(crate) fn node_of(&self, client: IpAddr) -> Option<(&Arc<str>, PlacementRule)> {
        let own = self.own.as_ref().filter(|own| has_client(own, client));
        let own = own.map(|own| (&own.name, PlacementRule::ServerNode));
        let by_range = || Some((self.by_range(client)?, PlacementRule::PodRange));
        let by_address = || Some((self.addresses.get(&client)?, PlacementRule::NodeAddress));
        own.or_else(by_range).or_else(by_address)
    }

    fn by_range(&self, client: IpAddr) -> Option<&Arc<str>> {
        let mut lengths = self.ranges.iter().rev();
        lengths.find_map(|(length, ranges)| {
            let range = range_around(client, *length)?;
            ranges.get(&range)
        })
    }
}

fn has_client(node: &Node, client: IpAddr) -> bool {
    let mut ranges = node.pod_cidrs.iter();
    node.addresses.contains(&client) || ranges.any(|range| range.contains(client))
}
