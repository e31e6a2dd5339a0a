//! A cluster as a set of objects, and its conversion for the engine.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;

use topology_core::model::{Drain, EndpointSlice, Labels, Node, Service, TopologyPolicy};
use topology_core::resolve::Viewpoint;
use topology_core::snapshot::Snapshot;

use crate::generate::ME;

/// Every object of a cluster.
#[derive(Debug, Clone, Default)]
pub(crate) struct Cluster {
    pub(crate) nodes: Vec<Node>,
    pub(crate) namespaces: Vec<(String, Labels)>,
    pub(crate) services: Vec<Service>,
    pub(crate) slices: Vec<EndpointSlice>,
    pub(crate) policies: Vec<TopologyPolicy>,
    pub(crate) drains: Vec<Drain>,
    /// The addresses of the viewpoint's node where node ports are served.
    pub(crate) node_port_addresses: BTreeSet<IpAddr>,
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

    /// The view from the node `ME`, at milliseconds since 1970.
    pub(crate) fn viewpoint(&self, now: Option<i64>) -> Viewpoint {
        Viewpoint {
            now,
            node_port_addresses: Arc::new(self.node_port_addresses.clone()),
            ..Viewpoint::new(ME)
        }
    }

    pub(crate) fn node(&self, name: &str) -> Option<&Node> {
        self.nodes.iter().find(|node| *node.name == *name)
    }
}
