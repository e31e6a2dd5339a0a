//! Schedules the periodic comparison, and keeps the rest of the running one.

use std::time::Duration;
use std::vec::IntoIter;

use dataplane::ipvs::ListedServer;
use tokio::time::Instant;

/// State of the periodic comparison.
#[derive(Debug)]
pub(super) struct PeriodicCheck {
    next: Instant,
    /// Virtual servers that are listed and not compared yet; `None` between two comparisons.
    left: Option<IntoIter<ListedServer>>,
}

impl PeriodicCheck {
    pub(super) fn new() -> Self {
        Self {
            next: Instant::now(),
            left: None,
        }
    }

    /// When the next comparison starts.
    pub(super) fn next(&self) -> Instant {
        self.next
    }

    /// Schedules the next comparison a period from now.
    pub(super) fn schedule(&mut self, period: Duration) {
        self.next = Instant::now() + period;
    }

    pub(super) fn is_running(&self) -> bool {
        self.left.is_some()
    }

    pub(super) fn begin(&mut self, listed: Vec<ListedServer>) {
        self.left = Some(listed.into_iter());
    }

    /// Aborts the running comparison.
    pub(super) fn abort(&mut self) {
        self.left = None;
    }

    /// The next virtual servers to compare. An empty slice ends the comparison; `None` if none runs.
    pub(super) fn next_slice(&mut self, most: usize) -> Option<Vec<ListedServer>> {
        let left = self.left.as_mut()?;
        let slice: Vec<ListedServer> = left.by_ref().take(most).collect();
        if slice.is_empty() {
            self.left = None;
        }
        Some(slice)
    }
}
