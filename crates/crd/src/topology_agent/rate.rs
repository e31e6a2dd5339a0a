//! Limits how much the agents of a cluster write together. The limits of one report follow from the
//! number of nodes.

use std::time::Duration;

use crate::agent::{MAX_REPORT_BYTES, MIN_REPORT_BYTES};

/// The target size of the reports of all nodes together, in bytes of JSON. The default quota of
/// etcd is 2 GiB, which includes the history between two compactions.
const ALL_REPORTS_BYTES: usize = 64 * 1024 * 1024;
/// The limit of reports per second of all agents together, on average.
pub const WRITES_PER_SECOND: u32 = 50;
/// The limit of bytes of reports per second of all agents together, on average.
pub const BYTES_PER_SECOND: u64 = 512 * 1024;
/// Half of the minimum time for two reports of one node.
const LEAST: Duration = Duration::from_secs(30);

/// The limit of the lists of one report, in bytes, for this number of nodes.
pub fn report_bytes(nodes: u64) -> usize {
    let nodes = usize::try_from(nodes.max(1)).unwrap_or(usize::MAX);
    (ALL_REPORTS_BYTES / nodes).clamp(MIN_REPORT_BYTES, MAX_REPORT_BYTES)
}

/// The time in which every node may write one report of `bytes`.
pub fn round(nodes: u64, bytes: u64) -> Duration {
    let by_writes = Duration::from_secs(nodes) / WRITES_PER_SECOND;
    let bytes = nodes.saturating_mul(bytes);
    let by_bytes = Duration::from_millis(bytes.saturating_mul(1000) / BYTES_PER_SECOND);
    by_writes.max(by_bytes)
}

/// The minimum time for two reports of one node.
pub fn two_reports(round: Duration) -> Duration {
    2 * LEAST.max(round)
}

/// The time after which every available node has reported a change.
///
/// A report waits for its moment in a round, and the two reports before it may take a round each.
/// Agents check every 15 seconds.
pub fn every_report(nodes: u64) -> Duration {
    let round = round(
        nodes,
        u64::try_from(report_bytes(nodes)).unwrap_or(u64::MAX),
    );
    round + two_reports(round) + Duration::from_secs(30)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_are_smaller_and_rarer_with_more_nodes() {
        let nodes = [0, 1, 512, 1024, 5000, 1_000_000];
        let kibi = nodes.map(|nodes| report_bytes(nodes) / 1024);
        assert_eq!(kibi, [128, 128, 128, 64, 16, 16]);
        let seconds = [1, 500, 5000, 50_000].map(|nodes| round(nodes, 1000).as_secs());
        assert_eq!(seconds, [0, 10, 100, 1000]);
        let seconds = [3, 5000].map(|nodes| every_report(nodes).as_secs());
        assert_eq!(seconds, [90, 498]);
    }
}
