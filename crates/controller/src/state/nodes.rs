//! What of a Node matters: its labels, addresses, CPU and readiness. Heartbeats change none of them.

use std::net::IpAddr;

use serde_json::Value;
use topology_core::model::{Labels, Node};

use super::validate::read;

/// Where a Node is, and what it can do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Place {
    /// Its labels.
    pub labels: Labels,
    /// Its internal addresses.
    pub addresses: Vec<IpAddr>,
    /// The CPU that pods may use, in thousandths.
    pub cpu_milli: u64,
    /// Whether it is ready.
    pub ready: bool,
}

impl Place {
    pub(super) const fn labels(&self) -> &Labels {
        &self.labels
    }

    /// The Node as the allocator of hints wants it.
    pub(super) fn node(&self, name: &str) -> Node {
        Node {
            labels: self.labels.clone(),
            cpu_milli: self.cpu_milli,
            ready: self.ready,
            ..Node::new(name)
        }
    }
}

/// Reads a Node as agents read it.
pub(super) fn place(object: &Value) -> Place {
    let read = read(object, None);
    let node = read.as_ref().and_then(|read| read.snapshot.nodes().next());
    node.map_or_else(Place::default, |node| Place {
        labels: node.labels.clone(),
        addresses: node.addresses.clone(),
        cpu_milli: node.cpu_milli,
        ready: node.ready,
    })
}
