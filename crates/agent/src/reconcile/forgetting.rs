//! Queues connection tracking entries that are to be deleted, a batch at a time.

use std::collections::{BTreeMap, BTreeSet};

use dataplane::conntrack::Flow;
use topology_core::plan::Step;

/// The batch under way and what waits behind it, each flow with the step that asked for it.
#[derive(Debug, Default)]
pub(super) struct Forgetting {
    running: BTreeMap<Flow, Step>,
    waiting: BTreeMap<Flow, Step>,
    /// Whether what deletes them is gone for good.
    is_lost: bool,
}

impl Forgetting {
    /// Adds flows. A flow of the running batch waits again: its real server may have come back and gone meanwhile.
    pub(super) fn add(&mut self, flows: BTreeMap<Flow, Step>) {
        self.waiting.extend(flows);
    }

    pub(super) fn is_running(&self) -> bool {
        !self.running.is_empty()
    }

    /// Makes the waiting flows the running batch. Returns them; an empty batch needs no work.
    pub(super) fn begin(&mut self) -> BTreeSet<Flow> {
        self.running = std::mem::take(&mut self.waiting);
        self.running.keys().copied().collect()
    }

    /// Ends the running batch. Returns its flows but those that wait again.
    pub(super) fn end(&mut self) -> BTreeMap<Flow, Step> {
        let mut ended = std::mem::take(&mut self.running);
        ended.retain(|flow, _| !self.waiting.contains_key(flow));
        ended
    }

    /// The thread that deletes entries is gone for good.
    pub(super) fn lose(&mut self) {
        self.is_lost = true;
    }

    pub(super) fn is_lost(&self) -> bool {
        self.is_lost
    }
}
