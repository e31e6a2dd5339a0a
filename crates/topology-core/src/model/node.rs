//! Nodes: names, labels and addresses.

use std::net::IpAddr;
use std::sync::Arc;

use super::{IpNetwork, Labels};

/// The Node label with the relative capacity of a Node's endpoints within a level: a whole number from 1 to 1,000.
pub const CAPACITY_LABEL: &str = "topology.ipvs-topo.io/capacity";

/// The parts of a Node that decisions depend on.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Node {
    /// `metadata.name`.
    pub name: Arc<str>,
    /// `metadata.labels`.
    pub labels: Labels,
    /// `status.addresses` of type `InternalIP`, in order, then those of type `ExternalIP`.
    pub addresses: Vec<IpAddr>,
    /// `spec.podCIDRs`: the ranges of the addresses of its pods, where the network plugin uses them.
    pub pod_cidrs: Vec<IpNetwork>,
    /// `status.allocatable.cpu` in thousandths; 0 if absent.
    pub cpu_milli: u64,
    /// Condition `Ready`; true if absent. Nodes that are not ready have no demand.
    pub ready: bool,
    /// Whether the Node is being deleted, or the cluster autoscaler has marked it for removal. Load balancers should
    /// then send it no more traffic (KP-HC-02). Its own traffic continues.
    pub leaving: bool,
}

impl Node {
    /// A ready Node without labels, addresses or CPU.
    pub fn new(name: &str) -> Self {
        Self {
            name: name.into(),
            labels: Labels::default(),
            addresses: Vec::new(),
            pod_cidrs: Vec::new(),
            cpu_milli: 0,
            ready: true,
            leaving: false,
        }
    }

    /// The value of [`CAPACITY_LABEL`]; 1 if it is absent or out of range.
    pub fn capacity(&self) -> u16 {
        let in_range = |capacity: &u16| (1..=1_000).contains(capacity);
        let label = self.labels.get(CAPACITY_LABEL);
        let capacity = label.and_then(|text| text.parse().ok()).filter(in_range);
        capacity.unwrap_or(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_capacity_that_is_absent_or_out_of_range_counts_as_one() {
        let cases = [
            ("1", 1),
            ("1000", 1000),
            ("0", 1),
            ("1001", 1),
            ("two", 1),
            ("", 1),
        ];
        for (text, capacity) in cases {
            let label = (Arc::from(CAPACITY_LABEL), Arc::from(text));
            let node = Node {
                labels: [label].into_iter().collect(),
                ..Node::new("n")
            };
            assert_eq!(node.capacity(), capacity, "{text}");
        }
    }
}
