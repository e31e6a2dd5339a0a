//! Crash points for tests: the process kills itself after a given number of writes.
//!
//! One write is a virtual-server or real-server command, a batch of routes, an nftables transaction, a line of the
//! ownership record, a sysctl, or a conntrack deletion. Like a crash, `SIGKILL` runs no cleanup.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counts writes down and kills the process at zero.
#[derive(Debug)]
pub struct CrashPoint {
    /// Writes left before the process is killed; `u64::MAX` means never.
    left: AtomicU64,
}

impl CrashPoint {
    /// With `None` the process is never killed; with `Some(n)` after `n` writes.
    pub fn new(after: Option<u64>) -> Self {
        Self {
            left: AtomicU64::new(after.unwrap_or(u64::MAX)),
        }
    }

    /// How many of `writes` writes are done before the process is killed.
    pub fn allows(&self, writes: usize) -> usize {
        let left = self.left.load(Ordering::Relaxed);
        usize::try_from(left).map_or(writes, |left| left.min(writes))
    }

    /// Records `done` finished writes. Does not return at the crash point.
    pub fn record_writes(&self, done: usize) {
        let left = self.left.load(Ordering::Relaxed);
        if left == u64::MAX {
            return;
        }
        let left = left.saturating_sub(done as u64);
        self.left.store(left, Ordering::Relaxed);
        if left == 0 {
            die();
        }
    }
}

/// Kills the process as `kill -9` does.
fn die() {
    let killed =
        rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
    if killed.is_err() {
        std::process::abort();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_crash_point_every_write_is_allowed() {
        let crash_point = CrashPoint::new(None);
        crash_point.record_writes(1_000_000);
        assert_eq!(crash_point.allows(7), 7);
    }

    #[test]
    fn a_crash_point_allows_only_the_remaining_writes() {
        let crash_point = CrashPoint::new(Some(5));
        assert_eq!(crash_point.allows(9), 5);
        crash_point.record_writes(3);
        assert_eq!(crash_point.allows(9), 2);
    }
}
