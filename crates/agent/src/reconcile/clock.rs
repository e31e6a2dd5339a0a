//! The calendar, for drains that expire and endpoints that start slowly.

use std::time::{SystemTime, UNIX_EPOCH};

use tokio::time::Instant;

/// The calendar leapt if it differs by more milliseconds than this from what was carried on.
const LEAP: u64 = 1000;

/// The machine's calendar, read now and then and carried on by the loop's own clock between.
#[derive(Debug, Clone, Copy)]
pub(super) struct Clock {
    read: i64,
    at: Instant,
}

impl Clock {
    /// Reads the calendar. To be done again now and then: a machine may learn the time after it has started.
    pub(super) fn set() -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        let read = since.map_or(0, |since| {
            i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
        });
        Self {
            read,
            at: Instant::now(),
        }
    }

    /// Whether somebody has set the calendar since `before` was read.
    pub(super) fn leapt_since(&self, before: &Self) -> bool {
        self.now().abs_diff(before.now()) > LEAP
    }

    /// Another calendar.
    #[cfg(test)]
    pub(super) fn ahead(self, milliseconds: i64) -> Self {
        Self {
            read: self.read + milliseconds,
            ..self
        }
    }

    /// Milliseconds since 1970.
    pub(super) fn now(&self) -> i64 {
        let passed = i64::try_from(self.at.elapsed().as_millis()).unwrap_or(i64::MAX);
        self.read.saturating_add(passed)
    }
}
