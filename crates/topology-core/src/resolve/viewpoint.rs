//! The node and the time that a decision is made for.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::memory::Memory;
use crate::scheduler::Scheduler;

/// The node and the time that a decision is made for: decisions differ from node to node and from moment to moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Viewpoint {
    /// The name of the Node.
    pub node: Arc<str>,
    /// The scheduler of every virtual server, unless its Service asks for another.
    pub scheduler: Scheduler,
    /// Schedulers that the kernel of the node does not have; `wrr` takes their place.
    pub missing: Arc<BTreeSet<Scheduler>>,
    /// Milliseconds since 1970; without a moment nothing ramps, nothing is held and no drain has expired.
    pub now: Option<i64>,
    /// What is known of earlier decisions.
    pub memory: Arc<Memory>,
}

impl Viewpoint {
    /// The view from `node`, scheduling by `wrr`.
    pub fn new(node: impl Into<Arc<str>>) -> Self {
        Self {
            node: node.into(),
            scheduler: Scheduler::default(),
            missing: Arc::default(),
            now: None,
            memory: Arc::default(),
        }
    }
}
