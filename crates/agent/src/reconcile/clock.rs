//! The calendar, for drains that expire and for slow start.

use std::time::{SystemTime, UNIX_EPOCH};

use tokio::time::Instant;

/// The calendar was changed if it differs by more milliseconds than this from its extrapolation.
const LEAP: u64 = 1000;

/// The calendar, read periodically and extrapolated with the loop's own clock.
#[derive(Debug, Clone, Copy)]
pub(super) struct Clock {
    read: i64,
    at: Instant,
}

impl Clock {
    /// Reads the calendar. Must be repeated: a machine may get the time after its start.
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

    /// Whether the calendar was changed since `before` was read.
    pub(super) fn leapt_since(&self, before: &Self) -> bool {
        self.now().abs_diff(before.now()) > LEAP
    }

    /// Sets another calendar.
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
