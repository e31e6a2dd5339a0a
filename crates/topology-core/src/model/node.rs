//! Nodes: names, labels and addresses.

use std::net::IpAddr;
use std::sync::Arc;

use super::Labels;

/// The Node label that says how much traffic an endpoint there takes relative to its neighbours in a level:
/// a whole number from 1 to 1,000.
pub const CAPACITY_LABEL: &str = "topology.ipvs-topo.io/capacity";

/// A Node, as far as it places endpoints and clients.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Node {
    /// `metadata.name`.
    pub name: Arc<str>,
    /// `metadata.labels`.
    pub labels: Labels,
    /// `status.addresses` of type `InternalIP`, in order.
    pub addresses: Vec<IpAddr>,
    /// `status.allocatable.cpu` in thousandths; 0 if it is not said.
    pub cpu_milli: u64,
    /// Condition `Ready`, true if it is not said; Nodes that are not ready bring no demand.
    pub ready: bool,
    /// Whether it is being deleted, or the cluster autoscaler marked it for removal: nobody outside
    /// should send traffic through it any more (KP-HC-02). Its own traffic goes on.
    pub leaving: bool,
}

impl Node {
    /// A ready Node of which nothing else is known.
    pub fn new(name: &str) -> Self {
        Self {
            name: name.into(),
            labels: Labels::default(),
            addresses: Vec::new(),
            cpu_milli: 0,
            ready: true,
            leaving: false,
        }
    }

    /// What [`CAPACITY_LABEL`] says; 1 if it is absent or not in its range.
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
