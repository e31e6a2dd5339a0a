//! Queues connection tracking entries for deletion, a batch at a time.

use std::collections::{BTreeMap, BTreeSet};

use dataplane::conntrack::Flow;
use topology_core::plan::Step;

/// The running batch and the queue behind it, each flow with its step.
#[derive(Debug, Default)]
pub(super) struct FlowDeletions {
    running: BTreeMap<Flow, Step>,
    waiting: BTreeMap<Flow, Step>,
    /// Whether the deleting thread has exited.
    is_lost: bool,
}

impl FlowDeletions {
    /// Adds flows. A flow of the running batch is queued again: its real server may have been added and deleted
    /// meanwhile.
    pub(super) fn add(&mut self, flows: BTreeMap<Flow, Step>) {
        self.waiting.extend(flows);
    }

    pub(super) fn is_running(&self) -> bool {
        !self.running.is_empty()
    }

    /// Makes the queue the running batch. Returns the batch; an empty one needs no work.
    pub(super) fn begin(&mut self) -> BTreeSet<Flow> {
        self.running = std::mem::take(&mut self.waiting);
        self.running.keys().copied().collect()
    }

    /// Ends the running batch. Returns its flows, except those that are queued again.
    pub(super) fn end(&mut self) -> BTreeMap<Flow, Step> {
        let mut ended = std::mem::take(&mut self.running);
        ended.retain(|flow, _| !self.waiting.contains_key(flow));
        ended
    }

    /// Records that the deleting thread has exited.
    pub(super) fn lose(&mut self) {
        self.is_lost = true;
    }

    pub(super) fn is_lost(&self) -> bool {
        self.is_lost
    }
}
