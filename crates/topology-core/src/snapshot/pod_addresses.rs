//! Finds Pods by their addresses.

use std::net::IpAddr;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::model::{NodePods, ObjectName};

/// The Pods at each address. A change of a Node's Pods costs the Pods of that Node.
#[derive(Debug, Default)]
pub(super) struct PodAddresses {
    /// Sorted by Node. More than one, while an address moves from one Node to another.
    pods: FxHashMap<IpAddr, SmallVec<[PodOnNode; 1]>>,
    of_node: FxHashMap<Arc<str>, Vec<IpAddr>>,
}

#[derive(Debug)]
struct PodOnNode {
    node: Arc<str>,
    pod: ObjectName,
}

impl PodAddresses {
    /// The Nodes whose Pods are known, in no order.
    pub(super) fn nodes(&self) -> impl Iterator<Item = &Arc<str>> {
        self.of_node.keys()
    }

    /// The Pod that has `address`, and its Node: of several Nodes, the first by name.
    pub(super) fn at(&self, address: IpAddr) -> Option<(&ObjectName, &Arc<str>)> {
        let first = self.pods.get(&address)?.first()?;
        Some((&first.pod, &first.node))
    }

    pub(super) fn set(&mut self, pods: NodePods) {
        self.remove(&pods.node);
        let NodePods { node, pods } = pods;
        let addresses = pods.keys().copied().collect();
        for (address, pod) in pods {
            let at_address = self.pods.entry(address).or_default();
            let at = at_address.partition_point(|other| other.node < node);
            let node = Arc::clone(&node);
            at_address.insert(at, PodOnNode { node, pod });
        }
        self.of_node.insert(node, addresses);
    }

    pub(super) fn remove(&mut self, node: &str) {
        for address in self.of_node.remove(node).unwrap_or_default() {
            let Some(at_address) = self.pods.get_mut(&address) else {
                continue;
            };
            at_address.retain(|one| *one.node != *node);
            if at_address.is_empty() {
                self.pods.remove(&address);
            }
        }
    }
}
