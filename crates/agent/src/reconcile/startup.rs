//! Tracks the progress of the start.

use cluster::event::Completeness;
use tokio::time::Instant;
use topology_core::virtual_server::VirtualServerKey;

use crate::state::StartTimes;

/// State of the start.
#[derive(Debug)]
pub(super) struct Startup {
    /// The keys of the ownership record, until the first pass is done.
    claims: Vec<VirtualServerKey>,
    /// `None` until the first pass is done; then whether its input was complete.
    done: Option<Completeness>,
    /// When the first complete read of the input was done.
    input_since: Option<Instant>,
    times: StartTimes,
}

impl Startup {
    pub(super) fn new(claims: Vec<VirtualServerKey>) -> Self {
        Self {
            claims,
            done: None,
            input_since: None,
            times: StartTimes::default(),
        }
    }

    /// Whether the first pass is done.
    pub(super) fn is_done(&self) -> bool {
        self.done.is_some()
    }

    /// Whether the input of the passes was complete; `None` before the first pass is done.
    pub(super) fn input(&self) -> Option<Completeness> {
        self.done
    }

    /// Records that the first complete read of the input is done.
    pub(super) fn input_is_read(&mut self) {
        self.input_since.get_or_insert_with(Instant::now);
    }

    /// Records that a full pass over the whole input is done.
    pub(super) fn input_is_whole(&mut self) {
        self.done = Some(Completeness::Whole);
    }

    /// Records that the first pass is done.
    pub(super) fn end(&mut self, input: Option<Completeness>, times: StartTimes) {
        (self.done, self.times) = (input, times);
    }

    pub(super) fn take_claims(&mut self) -> Vec<VirtualServerKey> {
        std::mem::take(&mut self.claims)
    }

    pub(super) fn input_since(&self) -> Option<Instant> {
        self.input_since
    }

    pub(super) fn times(&self) -> StartTimes {
        self.times
    }
}
