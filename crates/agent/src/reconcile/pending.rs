//! Counts the input changes that no pass has processed.

use std::time::SystemTime;

use cluster::event::EndpointTrigger;
use jiff::Timestamp;
use tokio::time::Instant;

/// Pending changes, and the times of the last passes and changes.
#[derive(Debug)]
pub(super) struct PendingInput {
    started: Timestamp,
    /// When the oldest change arrived.
    since: Option<Instant>,
    /// The causes of changes of EndpointSlices.
    triggers: Vec<EndpointTrigger>,
    services: u64,
    slices: u64,
    /// Changes of earlier passes that wait only for the tables.
    behind_tables: Option<TakenChanges>,
    last_queued: Option<SystemTime>,
    last_pass: Option<SystemTime>,
}

/// The changes that a pass processes.
#[derive(Debug, Clone)]
pub(super) struct TakenChanges {
    /// When the oldest arrived.
    pub(super) since: Option<Instant>,
    pub(super) triggers: Vec<EndpointTrigger>,
}

impl PendingInput {
    pub(super) fn new() -> Self {
        Self {
            started: Timestamp::now(),
            since: None,
            triggers: Vec::new(),
            services: 0,
            slices: 0,
            behind_tables: None,
            last_queued: None,
            last_pass: None,
        }
    }

    /// Records that a batch arrived.
    pub(super) fn arrived(&mut self) {
        self.since.get_or_insert_with(Instant::now);
        self.last_queued = Some(SystemTime::now());
    }

    pub(super) fn count(&mut self, services: u64, slices: u64) {
        self.services += services;
        self.slices += slices;
    }

    /// Records the cause of a change, if it was not before the start of this process (KP-IN-18).
    pub(super) fn triggered(&mut self, trigger: EndpointTrigger) {
        if trigger.at > self.started {
            self.triggers.push(trigger);
        }
    }

    /// Records that a pass processes all of them.
    pub(super) fn take_up(&mut self) -> TakenChanges {
        (self.services, self.slices) = (0, 0);
        TakenChanges {
            since: self.since.take(),
            triggers: std::mem::take(&mut self.triggers),
        }
    }

    /// Records that only the tables, which are being written, are missing for these changes.
    pub(super) fn wait_for_tables(&mut self, taken: &TakenChanges) {
        let Some(waiting) = &mut self.behind_tables else {
            self.behind_tables = Some(taken.clone());
            return;
        };
        let since = [waiting.since, taken.since].into_iter().flatten().min();
        waiting.since = since;
        waiting.triggers.extend(&taken.triggers);
    }

    /// The changes that waited for the tables.
    pub(super) fn take_behind_tables(&mut self) -> Option<TakenChanges> {
        self.behind_tables.take()
    }

    pub(super) fn pass_ended(&mut self) {
        self.last_pass = Some(SystemTime::now());
    }

    pub(super) fn since(&self) -> Option<Instant> {
        self.since
    }

    pub(super) fn services(&self) -> u64 {
        self.services
    }

    pub(super) fn slices(&self) -> u64 {
        self.slices
    }

    pub(super) fn last_queued(&self) -> Option<SystemTime> {
        self.last_queued
    }

    pub(super) fn last_pass(&self) -> Option<SystemTime> {
        self.last_pass
    }
}
