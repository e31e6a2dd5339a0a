//! Finds the Node of a client by its address.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use topology_core::model::{IpNetwork, range_around};
use topology_core::snapshot::Snapshot;

/// The addresses and the pod ranges of Nodes.
#[derive(Debug, Default)]
pub(crate) struct ClientNodes {
    addresses: FxHashMap<IpAddr, Arc<str>>,
    /// By length of the prefix.
    ranges: BTreeMap<u8, FxHashMap<IpNetwork, Arc<str>>>,
}

impl ClientNodes {
    /// Of several Nodes with one address or range, the first by name gets it.
    pub(crate) fn of(snapshot: &Snapshot) -> Self {
        let mut nodes: Vec<_> = snapshot.nodes().collect();
        nodes.sort_unstable_by(|one, other| other.name.cmp(&one.name));
        let mut found = Self::default();
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

    /// The Node with this address, or else with the smallest pod range around it.
    pub(crate) fn node_of(&self, client: IpAddr) -> Option<&Arc<str>> {
        self.addresses.get(&client).or_else(|| {
            let mut lengths = self.ranges.iter().rev();
            lengths.find_map(|(length, ranges)| {
                let range = range_around(client, *length)?;
                ranges.get(&range)
            })
        })
    }
}
