//! Finds Nodes by their addresses and pod ranges.

use std::collections::BTreeMap;
use std::hash::Hash;
use std::net::IpAddr;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::model::{IpNetwork, Node, range_around};

/// The Nodes with each address and each pod range. A change of a Node costs its own addresses and ranges.
#[derive(Debug, Default)]
pub(super) struct NodeAddresses {
    addresses: NodesByKey<IpAddr>,
    /// By length of the prefix; no length is without ranges.
    pod_ranges: BTreeMap<u8, NodesByKey<IpNetwork>>,
}

impl NodeAddresses {
    /// Replaces the addresses and pod ranges of `old` by those of `new`.
    pub(super) fn replace(&mut self, old: Option<&Node>, new: Option<&Node>) {
        if old.map(|node| &node.addresses) != new.map(|node| &node.addresses) {
            self.replace_addresses(old, new);
        }
        if old.map(|node| &node.pod_cidrs) != new.map(|node| &node.pod_cidrs) {
            self.replace_pod_ranges(old, new);
        }
    }

    fn replace_addresses(&mut self, old: Option<&Node>, new: Option<&Node>) {
        if let Some(node) = old {
            for address in &node.addresses {
                self.addresses.remove(address, &node.name);
            }
        }
        if let Some(node) = new {
            for address in &node.addresses {
                self.addresses.insert(*address, &node.name);
            }
        }
    }

    fn replace_pod_ranges(&mut self, old: Option<&Node>, new: Option<&Node>) {
        if let Some(node) = old {
            for range in &node.pod_cidrs {
                if let Some(of_length) = self.pod_ranges.get_mut(&range.prefix()) {
                    of_length.remove(range, &node.name);
                }
            }
        }
        if let Some(node) = new {
            for range in &node.pod_cidrs {
                let of_length = self.pod_ranges.entry(range.prefix()).or_default();
                of_length.insert(*range, &node.name);
            }
        }
        self.pod_ranges
            .retain(|_, of_length| !of_length.0.is_empty());
    }

    /// The Nodes with this address, by name.
    pub(super) fn with_address(&self, address: IpAddr) -> &[Arc<str>] {
        self.addresses.get(&address)
    }

    /// The smallest pod range around the address, and the first Node by name that has the range.
    pub(super) fn pod_range_around(&self, address: IpAddr) -> Option<(IpNetwork, &Arc<str>)> {
        let mut lengths = self.pod_ranges.iter().rev();
        lengths.find_map(|(length, of_length)| {
            let range = range_around(address, *length)?;
            Some((range, of_length.get(&range).first()?))
        })
    }

    /// Each address, with the first Node by name that has it, in no order.
    pub(super) fn addresses(&self) -> impl Iterator<Item = (IpAddr, &Arc<str>)> {
        let addresses = self.addresses.0.iter();
        addresses.filter_map(|(address, names)| Some((*address, names.first()?)))
    }
}

/// The names of Nodes by an address or a range of theirs, sorted. Few keys have several Nodes.
#[derive(Debug)]
struct NodesByKey<K>(FxHashMap<K, SmallVec<[Arc<str>; 1]>>);

impl<K> Default for NodesByKey<K> {
    fn default() -> Self {
        Self(FxHashMap::default())
    }
}

impl<K: Eq + Hash> NodesByKey<K> {
    fn get(&self, key: &K) -> &[Arc<str>] {
        self.0.get(key).map_or(&[], |names| names)
    }

    fn insert(&mut self, key: K, node: &Arc<str>) {
        let names = self.0.entry(key).or_default();
        if let Err(at) = names.binary_search(node) {
            names.insert(at, Arc::clone(node));
        }
    }

    fn remove(&mut self, key: &K, node: &Arc<str>) {
        let Some(names) = self.0.get_mut(key) else {
            return;
        };
        names.retain(|name| name != node);
        if names.is_empty() {
            self.0.remove(key);
        }
    }
}
