//! When a report may be written: at once, but no more than twice a minute. No clock of its own.

use std::time::Duration;

use super::Difference;

/// In any such time there are two reports at most.
const MINUTE: Duration = Duration::from_secs(60);
/// Amounts alone change with every endpoint of the cluster, and nobody waits for them: so seldom that the agents of a large
/// cluster together are no load.
pub(super) const AMOUNTS: Duration = Duration::from_secs(600);
/// After a failure; twice as long after each further one.
const RETRY: Duration = Duration::from_secs(15);
/// What a failure waits at most, and what a report waits that has no place to go.
pub(super) const SELDOM: Duration = Duration::from_secs(300);

/// What was written lately.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    /// When the last report was written, and the one before.
    written: [Option<Duration>; 2],
    failures: u32,
    not_before: Duration,
}

impl Pace {
    /// When a report that differs so from the last one may be written; never if it does not differ.
    pub(crate) fn due(&self, difference: Difference) -> Option<Duration> {
        let [last, before] = self.written;
        let earliest = match difference {
            Difference::None => return None,
            Difference::Amounts => last.map(|last| last + AMOUNTS),
            Difference::News => before.map(|before| before + MINUTE),
        };
        Some(earliest.unwrap_or_default().max(self.not_before))
    }

    /// When it may be tried again after a failure.
    pub(crate) fn not_before(&self) -> Duration {
        self.not_before
    }

    /// It was written.
    pub(crate) fn wrote(&mut self, now: Duration) {
        let [last, _] = self.written;
        *self = Self {
            written: [Some(now), last],
            ..Self::default()
        };
    }

    /// It could not be written; `least` is how long the server wants to be left alone.
    pub(crate) fn failed(&mut self, now: Duration, least: Option<Duration>) {
        let wait = RETRY.saturating_mul(1 << self.failures.min(8)).min(SELDOM);
        self.failures += 1;
        self.not_before = now + wait.max(least.unwrap_or_default());
    }

    /// There is no place for it.
    pub(crate) fn nowhere(&mut self, now: Duration) {
        self.not_before = now + SELDOM;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn news_go_out_at_once_and_amounts_wait() {
        let mut pace = Pace::default();
        assert_eq!(pace.due(Difference::None), None);
        assert_eq!(pace.due(Difference::Amounts), Some(Duration::ZERO));
        pace.wrote(seconds(100));
        assert_eq!(pace.due(Difference::News), Some(Duration::ZERO));
        assert_eq!(pace.due(Difference::Amounts), Some(seconds(100) + AMOUNTS));
        pace.wrote(seconds(101));
        assert_eq!(pace.due(Difference::News), Some(seconds(160)));
    }

    #[test]
    fn a_failure_waits_longer_each_time_and_no_less_than_the_server_wants() {
        let mut pace = Pace::default();
        let waits: Vec<Duration> = (0..7)
            .map(|_| {
                pace.failed(Duration::ZERO, None);
                pace.due(Difference::News).unwrap()
            })
            .collect();
        assert_eq!(waits[..2], [RETRY, RETRY * 2]);
        assert!(waits.is_sorted() && waits[6] == SELDOM, "{waits:?}");
        pace.failed(seconds(1000), Some(seconds(900)));
        assert_eq!(pace.due(Difference::News), Some(seconds(1900)));
        pace.wrote(seconds(2000));
        assert_eq!(pace.due(Difference::News), Some(Duration::ZERO));
    }

    proptest! {
        #[test]
        fn there_are_never_more_than_two_in_a_minute(waits in prop::collection::vec(0..90_u64, 1..60)) {
            let (mut pace, mut now, mut written) = (Pace::default(), Duration::ZERO, Vec::new());
            for wait in waits {
                now += seconds(wait);
                if pace.due(Difference::News).unwrap() <= now {
                    pace.wrote(now);
                    written.push(now);
                }
            }
            for three in written.windows(3) {
                prop_assert!(three[2] >= three[0] + MINUTE, "{written:?}");
            }
        }
    }
}
