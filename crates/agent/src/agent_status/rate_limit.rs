//! Limits how often a report is written: at most twice a minute, less often in a large cluster, and at a different time
//! on every node. Has no clock of its own.

use std::time::Duration;

use crd::topology_agent::rate::{round, two_reports};

use super::compare::Difference;
use super::share::number_of;

/// Interval for changes of numbers only. They change with every endpoint of the cluster, and no client waits for them,
/// so the agents of a large cluster together cause little load.
pub(super) const AMOUNTS: Duration = Duration::from_secs(600);
/// Pause after a failure. It doubles with each further failure, plus the node's own offset in a round.
const RETRY: Duration = Duration::from_secs(15);
/// The longest pause after a failure, and the pause if the API server does not have the kind; plus the node's own
/// offset.
pub(super) const SELDOM: Duration = Duration::from_secs(300);

/// The cost of a report for the API server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct ReportLoad {
    /// Number of Nodes; each has a report.
    pub(super) nodes: u64,
    /// Length of the report as JSON.
    pub(super) bytes: u64,
}

impl ReportLoad {
    /// The time in which every node may write one such report.
    fn round(self) -> Duration {
        round(self.nodes, self.bytes)
    }
}

#[derive(Debug, Default)]
pub(crate) struct RateLimit {
    /// The node's offset in a round, in thousandths.
    moment: u32,
    /// The difference from the last report, and since when.
    differs: Option<(Difference, Duration)>,
    /// When the last report was written, and the previous one.
    written: [Option<Duration>; 2],
    failures: u32,
    not_before: Duration,
    /// The last known round.
    round: Duration,
}

impl RateLimit {
    /// Nothing was written yet.
    pub(super) fn of(node: &str) -> Self {
        Self {
            moment: u32::try_from(number_of(node) % 1000).unwrap_or_default(),
            ..Self::default()
        }
    }

    /// When a report with this difference may be written; `None` without a difference.
    pub(super) fn due(
        &mut self,
        now: Duration,
        difference: Difference,
        load: ReportLoad,
    ) -> Option<Duration> {
        let since = self.differs.filter(|(known, _)| *known == difference);
        let since = since.map_or(now, |(_, since)| since);
        self.differs = Some((difference, since));
        self.round = load.round();
        let (round, [last, before]) = (self.round, self.written);
        let earliest = match difference {
            Difference::None => return None,
            Difference::Amounts => last.map(|last| last + AMOUNTS.max(round)),
            Difference::News => before.map(|before| before + two_reports(round)),
        };
        let own = since + self.part(round);
        Some(earliest.unwrap_or_default().max(own).max(self.not_before))
    }

    /// When it may be tried again after a failure.
    pub(crate) fn not_before(&self) -> Duration {
        self.not_before
    }

    /// Records a write.
    pub(crate) fn wrote(&mut self, now: Duration) {
        let [last, _] = self.written;
        *self = Self {
            moment: self.moment,
            round: self.round,
            written: [Some(now), last],
            ..Self::default()
        };
    }

    /// Records a failed write; `least` is the pause that the server requests.
    pub(crate) fn failed(&mut self, now: Duration, least: Option<Duration>) {
        let wait = RETRY.saturating_mul(1 << self.failures.min(8)).min(SELDOM);
        self.failures += 1;
        self.wait(now, wait.max(least.unwrap_or_default()));
    }

    /// Records that the API server does not have the kind.
    pub(crate) fn nowhere(&mut self, now: Duration) {
        self.wait(now, SELDOM);
    }

    /// The agents must not all return at the same time: each waits for its own offset, too.
    fn wait(&mut self, now: Duration, wait: Duration) {
        self.not_before = now + wait + self.part(self.round.max(wait));
    }

    /// The node's offset in a duration.
    fn part(&self, time: Duration) -> Duration {
        time.saturating_mul(self.moment) / 1000
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use crd::topology_agent::rate::{BYTES_PER_SECOND, WRITES_PER_SECOND};
    use proptest::prelude::*;

    use super::*;

    /// With three nodes a round takes almost no time.
    const SMALL: ReportLoad = ReportLoad {
        nodes: 3,
        bytes: 1000,
    };

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn news_are_written_at_once_and_amounts_wait() {
        let mut rate_limit = RateLimit::default();
        let now = seconds(100);
        assert_eq!(rate_limit.due(now, Difference::None, SMALL), None);
        assert_eq!(rate_limit.due(now, Difference::Amounts, SMALL), Some(now));
        rate_limit.wrote(now);
        let later = Some(now + AMOUNTS);
        assert_eq!(rate_limit.due(now, Difference::Amounts, SMALL), later);
        assert_eq!(rate_limit.due(now, Difference::News, SMALL), Some(now));
        rate_limit.wrote(seconds(101));
        let next = Some(seconds(160));
        assert_eq!(rate_limit.due(seconds(101), Difference::News, SMALL), next);
    }

    #[test]
    fn each_failure_waits_longer_and_at_least_as_long_as_the_server_asks_for() {
        let mut rate_limit = RateLimit::default();
        let waits: Vec<Duration> = (0..7)
            .map(|_| {
                rate_limit.failed(Duration::ZERO, None);
                rate_limit
                    .due(Duration::ZERO, Difference::News, SMALL)
                    .unwrap()
            })
            .collect();
        assert_eq!(waits[..2], [RETRY, RETRY * 2]);
        assert!(waits.is_sorted() && waits[6] == SELDOM, "{waits:?}");
        rate_limit.wrote(seconds(500));
        rate_limit.failed(seconds(1000), Some(SELDOM));
        let due = rate_limit.due(Duration::ZERO, Difference::News, SMALL);
        assert_eq!(due, Some(seconds(1300)));
        rate_limit.wrote(seconds(2000));
        let due = rate_limit.due(seconds(2000), Difference::News, SMALL);
        assert_eq!(due, Some(seconds(2000)));
    }

    #[test]
    fn in_a_large_cluster_each_node_writes_at_its_own_moment() {
        let load = ReportLoad {
            nodes: 5000,
            bytes: 1000,
        };
        assert_eq!(load.round(), seconds(100));
        let due = |node: u32| {
            let mut rate_limit = RateLimit::of(&format!("node-{node}"));
            rate_limit.due(seconds(7), Difference::News, load).unwrap()
        };
        let mut tenths = [0; 10];
        for node in 0..5000 {
            let wait = due(node).saturating_sub(seconds(7));
            tenths[usize::try_from(wait.as_secs() / 10).unwrap()] += 1;
        }
        assert!(
            tenths.iter().all(|count| (400..600).contains(count)),
            "{tenths:?}"
        );
        // The time does not move away while more changes arrive.
        let mut rate_limit = RateLimit::of("node-1");
        let first = rate_limit.due(seconds(7), Difference::News, load);
        assert_eq!(rate_limit.due(seconds(8), Difference::News, load), first);
    }

    #[test]
    fn d13_after_an_outage_the_agents_do_not_write_together() {
        for (nodes, wait, seconds_apart) in [(100, RETRY, 15), (5000, RETRY, 100)] {
            let load = ReportLoad { nodes, bytes: 1000 };
            let mut by_second: BTreeMap<u64, u64> = BTreeMap::new();
            for node in 0..nodes {
                let mut rate_limit = RateLimit::of(&format!("node-{node}"));
                rate_limit.due(seconds(7), Difference::News, load);
                rate_limit.failed(seconds(1000), None);
                let due = rate_limit
                    .due(seconds(1000), Difference::News, load)
                    .unwrap();
                assert!(due >= seconds(1000) + wait);
                *by_second.entry(due.as_secs()).or_default() += 1;
            }
            let most = by_second.values().max().unwrap();
            assert!(
                *most <= 3 * nodes / seconds_apart,
                "{nodes} nodes: {by_second:?}"
            );
        }
    }

    proptest! {
        #[test]
        fn there_are_never_more_than_two_in_a_minute(waits in prop::collection::vec(0..90_u64, 1..60)) {
            let (mut rate_limit, mut now, mut written) = (RateLimit::default(), Duration::ZERO, Vec::new());
            for wait in waits {
                now += seconds(wait);
                if rate_limit.due(now, Difference::News, SMALL).unwrap() <= now {
                    rate_limit.wrote(now);
                    written.push(now);
                }
            }
            for three in written.windows(3) {
                prop_assert!(three[2] >= three[0] + two_reports(SMALL.round()), "{written:?}");
            }
        }

        /// News every second on every node: within two rounds each node writes at most twice, for
        /// any number of nodes.
        #[test]
        fn the_rate_of_a_cluster_does_not_grow_with_its_nodes(nodes in 1..20_000_u64, bytes in 100..130_000_u64) {
            let load = ReportLoad { nodes, bytes };
            let two = two_reports(load.round());
            let mut rate_limit = RateLimit::of(&format!("node-{nodes}"));
            let mut written = Vec::new();
            let step = (two / 40).max(seconds(1));
            for turn in 0..400 {
                let now = step * turn;
                if rate_limit.due(now, Difference::News, load).unwrap() <= now {
                    rate_limit.wrote(now);
                    written.push(now);
                }
            }
            for three in written.windows(3) {
                prop_assert!(three[2] >= three[0] + two, "{written:?}");
            }
            // In milliseconds; the last one may be rounded down.
            let two = u64::try_from(two.as_millis()).unwrap() + 2;
            prop_assert!(2 * nodes * bytes * 1000 <= BYTES_PER_SECOND * two);
            prop_assert!(2 * nodes * 1000 <= u64::from(WRITES_PER_SECOND) * two);
        }
    }
}
