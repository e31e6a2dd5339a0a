//! A cluster as a set of objects, and its conversion for the engine.

use topology_core::model::{Drain, EndpointSlice, Labels, Node, Service, TopologyPolicy};
use topology_core::snapshot::Snapshot;

/// Every object of a cluster.
#[derive(Debug, Clone, Default)]
pub(crate) struct Cluster {
    pub(crate) nodes: Vec<Node>,
    pub(crate) namespaces: Vec<(String, Labels)>,
    pub(crate) services: Vec<Service>,
    pub(crate) slices: Vec<EndpointSlice>,
    pub(crate) policies: Vec<TopologyPolicy>,
    pub(crate) drains: Vec<Drain>,
}

impl Cluster {
    /// Converts it for the engine.
    pub(crate) fn snapshot(&self) -> Snapshot {
        let mut snapshot = Snapshot::default();
        for (name, labels) in &self.namespaces {
            snapshot.set_namespace(name.as_str(), labels.clone());
        }
        self.nodes
            .iter()
            .cloned()
            .for_each(|node| snapshot.set_node(node));
        self.policies
            .iter()
            .cloned()
            .for_each(|policy| snapshot.set_policy(policy));
        self.drains
            .iter()
            .cloned()
            .for_each(|drain| snapshot.set_drain(drain));
        self.services
            .iter()
            .cloned()
            .for_each(|service| snapshot.set_service(service));
        self.slices
            .iter()
            .cloned()
            .for_each(|slice| snapshot.set_slice(slice));
        snapshot
    }

    pub(crate) fn node(&self, name: &str) -> Option<&Node> {
        self.nodes.iter().find(|node| *node.name == *name)
    }
}
