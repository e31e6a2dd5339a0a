//! What of a Node matters: its labels, CPU and readiness. Heartbeats change none of them.

use serde_json::Value;
use topology_core::model::Labels;

use super::judge::read;

/// Where a Node is, and what it can do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Place {
    /// Its labels.
    pub labels: Labels,
    /// The CPU that pods may use, in thousandths.
    pub cpu_milli: u64,
    /// Whether it is ready.
    pub ready: bool,
}

/// Reads a Node as agents read it.
pub(super) fn place(object: &Value) -> Place {
    let read = read(object, None);
    let node = read.as_ref().and_then(|read| read.snapshot.nodes().next());
    node.map_or_else(Place::default, |node| Place {
        labels: node.labels.clone(),
        cpu_milli: node.cpu_milli,
        ready: node.ready,
    })
}
