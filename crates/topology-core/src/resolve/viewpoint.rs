//! The node and the time of a decision.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::memory::Memory;
use crate::scheduler::Scheduler;

/// The node and the time of a decision: decisions depend on both.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Viewpoint {
    /// Name of the Node.
    pub node: Arc<str>,
    /// The scheduler of virtual servers, unless the Service requests another one.
    pub scheduler: Scheduler,
    /// Schedulers that the node's kernel does not have; `wrr` replaces them.
    pub missing: Arc<BTreeSet<Scheduler>>,
    /// Milliseconds since 1970. With `None`, nothing ramps, there is no recovery hold, and no drain expires.
    pub now: Option<i64>,
    /// The memory of earlier decisions.
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
