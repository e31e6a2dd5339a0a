//! The labels, addresses, pod ranges, CPU and readiness of Nodes. Heartbeats change none of them.

use std::net::IpAddr;

use serde_json::Value;
use topology_core::model::{IpNetwork, Labels, Node};

use super::validate::read;

/// The part of a Node that the map and hints depend on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NodeInfo {
    pub labels: Labels,
    pub addresses: Vec<IpAddr>,
    /// `spec.podCIDRs`.
    pub pod_cidrs: Vec<IpNetwork>,
    /// Allocatable CPU in thousandths.
    pub cpu_milli: u64,
    pub ready: bool,
}

impl NodeInfo {
    /// Reads a Node with the code of the agents.
    pub(super) fn of(object: &Value) -> Self {
        let read = read(object, None);
        let node = read.as_ref().and_then(|read| read.snapshot.nodes().next());
        node.map_or_else(Self::default, |node| Self {
            labels: node.labels.clone(),
            addresses: node.addresses.clone(),
            pod_cidrs: node.pod_cidrs.clone(),
            cpu_milli: node.cpu_milli,
            ready: node.ready,
        })
    }

    pub(super) const fn labels(&self) -> &Labels {
        &self.labels
    }

    pub(super) fn node(&self, name: &str) -> Node {
        Node {
            labels: self.labels.clone(),
            cpu_milli: self.cpu_milli,
            ready: self.ready,
            ..Node::new(name)
        }
    }
}
