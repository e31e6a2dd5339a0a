//! The Pods in a snapshot.

use std::net::IpAddr;
use std::sync::Arc;

use super::Snapshot;
use crate::model::{NodePods, ObjectName};

impl Snapshot {
    /// Replaces the Pods on a Node. They decide nothing about virtual servers.
    pub fn set_node_pods(&mut self, pods: NodePods) {
        self.pod_addresses.set(pods);
    }

    /// Removes the Pods on a Node.
    pub fn remove_node_pods(&mut self, node: &str) {
        self.pod_addresses.remove(node);
    }

    /// The Nodes whose Pods are known, in no order.
    pub fn nodes_with_pods(&self) -> impl Iterator<Item = &Arc<str>> {
        self.pod_addresses.nodes()
    }

    /// The Pod that has `address`, and its Node: of several Nodes, the first by name.
    pub fn pod_at(&self, address: IpAddr) -> Option<(&ObjectName, &Arc<str>)> {
        self.pod_addresses.at(address)
    }
}
