//! The calendar, for drains that expire and endpoints that start slowly.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::time::Instant;

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

    /// Milliseconds since 1970.
    pub(super) fn now(&self) -> i64 {
        let passed = i64::try_from(self.at.elapsed().as_millis()).unwrap_or(i64::MAX);
        self.read.saturating_add(passed)
    }

    /// What the calendar said at that instant, by when it was read: the same for as long as it is not read again.
    pub(super) fn moment(&self, instant: Instant) -> SystemTime {
        let read = UNIX_EPOCH + Duration::from_millis(u64::try_from(self.read).unwrap_or_default());
        let before = self.at.saturating_duration_since(instant);
        let moment = read + instant.saturating_duration_since(self.at);
        moment.checked_sub(before).unwrap_or(moment)
    }
}
