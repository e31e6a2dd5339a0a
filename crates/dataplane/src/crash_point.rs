//! Crash points for tests: the process kills itself after a given number of writes to the world.
//!
//! A write is one virtual-server or real-server command, one batch of routes, one nftables
//! transaction, one line of the ownership record, one sysctl, one conntrack deletion.
//! `SIGKILL` leaves no time for anything, which is what a crash means.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counts writes down and, when armed, kills the process at zero.
#[derive(Debug)]
pub struct CrashPoint {
    /// Writes left before the process dies; `u64::MAX` means never.
    left: AtomicU64,
}

impl CrashPoint {
    /// `None` never blows; `Some(n)` kills the process once `n` writes are done.
    pub fn new(after: Option<u64>) -> Self {
        Self {
            left: AtomicU64::new(after.unwrap_or(u64::MAX)),
        }
    }

    /// How many of `writes` writes are sent before the process aborts.
    pub fn allows(&self, writes: usize) -> usize {
        let left = self.left.load(Ordering::Relaxed);
        usize::try_from(left).map_or(writes, |left| left.min(writes))
    }

    /// Notes `done` finished writes; does not return if the crash point is reached.
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

/// Ends the process as `kill -9` would.
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
    fn an_unarmed_fuse_allows_everything_for_ever() {
        let crash_point = CrashPoint::new(None);
        crash_point.record_writes(1_000_000);
        assert_eq!(crash_point.allows(7), 7);
    }

    #[test]
    fn an_armed_fuse_allows_no_more_writes_than_are_left() {
        let crash_point = CrashPoint::new(Some(5));
        assert_eq!(crash_point.allows(9), 5);
        crash_point.record_writes(3);
        assert_eq!(crash_point.allows(9), 2);
    }
}
