//! How much the agents of a cluster may write together: the limits of one report follow from the number of nodes.

use std::time::Duration;

use crate::agent::{MAX_REPORT_BYTES, MIN_REPORT_BYTES};

/// What the reports of all nodes aim to take, in bytes of JSON.
///
/// The default quota of etcd is 2 GiB, which the history between two compactions shares.
const ALL_REPORTS_BYTES: usize = 64 * 1024 * 1024;
/// So many reports all agents of a cluster together write in a second, at most, over a while.
pub const WRITES_PER_SECOND: u32 = 50;
/// So many bytes of reports all agents of a cluster together write in a second, at most, over a while.
pub const BYTES_PER_SECOND: u64 = 512 * 1024;
/// Two reports of one node take at least twice so long.
const LEAST: Duration = Duration::from_secs(30);

/// The bytes that the lists of one report may take in a cluster of so many nodes.
pub fn report_bytes(nodes: u64) -> usize {
    let nodes = usize::try_from(nodes.max(1)).unwrap_or(usize::MAX);
    (ALL_REPORTS_BYTES / nodes).clamp(MIN_REPORT_BYTES, MAX_REPORT_BYTES)
}

/// The time in which every one of `nodes` may write a report of so many bytes once.
pub fn round(nodes: u64, bytes: u64) -> Duration {
    let by_writes = Duration::from_secs(nodes) / WRITES_PER_SECOND;
    let bytes = nodes.saturating_mul(bytes);
    let by_bytes = Duration::from_millis(bytes.saturating_mul(1000) / BYTES_PER_SECOND);
    by_writes.max(by_bytes)
}

/// The least time in which one node writes two reports, in a cluster in which a round takes so long.
pub fn two_reports(round: Duration) -> Duration {
    2 * LEAST.max(round)
}

/// The time after which every node has reported what was new at its beginning, unless it is away.
///
/// A report waits for its moment in a round, and then for the two before it. Agents look every 15 seconds.
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
    fn reports_are_smaller_and_seldomer_where_there_are_more_nodes() {
        let nodes = [0, 1, 512, 1024, 5000, 1_000_000];
        let kibi = nodes.map(|nodes| report_bytes(nodes) / 1024);
        assert_eq!(kibi, [128, 128, 128, 64, 16, 16]);
        let seconds = [1, 500, 5000, 50_000].map(|nodes| round(nodes, 1000).as_secs());
        assert_eq!(seconds, [0, 10, 100, 1000]);
        let seconds = [3, 5000].map(|nodes| every_report(nodes).as_secs());
        assert_eq!(seconds, [90, 498]);
    }
}
