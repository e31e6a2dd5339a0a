//! Counts the input changes that no pass has processed.

use std::time::SystemTime;

use tokio::time::Instant;

/// Pending changes, and the times of the last passes and changes.
#[derive(Debug, Default)]
pub(super) struct PendingInput {
    /// When the oldest change arrived.
    since: Option<Instant>,
    services: u64,
    slices: u64,
    last_queued: Option<SystemTime>,
    last_pass: Option<SystemTime>,
}

impl PendingInput {
    /// Records that a batch arrived.
    pub(super) fn arrived(&mut self) {
        self.since.get_or_insert_with(Instant::now);
        self.last_queued = Some(SystemTime::now());
    }

    pub(super) fn count(&mut self, services: u64, slices: u64) {
        self.services += services;
        self.slices += slices;
    }

    /// Records that a pass processes all of them. Returns when the oldest arrived.
    pub(super) fn take_up(&mut self) -> Option<Instant> {
        (self.services, self.slices) = (0, 0);
        self.since.take()
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
