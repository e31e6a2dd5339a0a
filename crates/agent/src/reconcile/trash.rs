//! Estimates the kernel's list of deleted real servers.
//!
//! A deleted real server stays in that list for two to three minutes, and each addition walks the whole list
//! (`ip_vs_trash_get_dest` of `net/netfilter/ipvs/ip_vs_ctl.c`, `IP_VS_DEST_TRASH_PERIOD` of `include/net/ip_vs.h`). So
//! while many are added, leaving real servers should wait with weight 0, because each deletion makes all later
//! additions more expensive.

use std::collections::VecDeque;

use topology_core::mirror::Mirror;
use topology_core::plan::Step;

/// How long a deleted real server stays in the list at most, in milliseconds.
const KEPT: u64 = 180_000;

/// How long an addition counts as recent, in milliseconds.
const RECENT: u64 = 10_000;

/// Length of the list that recent additions may walk. It is low because the list stays for minutes, in which the
/// additions may continue.
const BEARABLE: u64 = 20_000;

/// Real servers that may wait with weight 0. Each takes as much memory as one in the list, but for longer. Enough for
/// 1,000 leaving endpoints a second, each of three virtual servers, until they are deleted after a minute.
const MOST_WAITING: u64 = 300_000;

/// Recent deletions and additions.
#[derive(Debug)]
pub(super) struct Trash {
    deleted: Recently,
    added: Recently,
}

impl Trash {
    pub(super) fn new() -> Self {
        Self {
            deleted: Recently::within(KEPT),
            added: Recently::within(RECENT),
        }
    }

    /// Counts a step that succeeded. Call it before the mirror commits the step. A real server that returns while it
    /// waits is an addition that was avoided.
    pub(super) fn record(&mut self, step: &Step, mirror: &Mirror, now: u64) {
        match step {
            Step::AddReal { .. } => self.added.record(1, now),
            Step::EditReal { key, real } => {
                let returns = mirror.drain(key, real.address, real.port).is_some();
                self.added.record(u64::from(returns), now);
            }
            Step::DeleteReal { .. } => self.deleted.record(1, now),
            Step::DeleteServer { key } => {
                let reals = mirror.get(key).map_or(0, |held| held.real_servers.len());
                self.deleted.record(reals as u64, now);
            }
            Step::AddServer { .. }
            | Step::EditServer { .. }
            | Step::DrainReal { .. }
            | Step::DeleteFlows { .. } => {}
        }
    }

    /// Whether real servers without connections should wait, with `waiting` ones already: true if the recent rate of
    /// additions makes the list expensive.
    pub(super) fn puts_off(&self, waiting: u64, now: u64) -> bool {
        let walked = self
            .deleted
            .total(now)
            .saturating_mul(self.added.total(now));
        walked > BEARABLE && waiting < MOST_WAITING
    }
}

/// Counts events in the last milliseconds, to a sixteenth of that time.
#[derive(Debug)]
struct Recently {
    span: u64,
    /// The start of each part of that time, and its count.
    parts: VecDeque<(u64, u64)>,
}

impl Recently {
    fn within(span: u64) -> Self {
        Self {
            span,
            parts: VecDeque::new(),
        }
    }

    fn record(&mut self, times: u64, now: u64) {
        match self.parts.back_mut() {
            Some((begun, sum)) if now < begun.saturating_add(self.span / 16) => *sum += times,
            _ => {
                let span = self.span;
                self.parts
                    .retain(|(begun, _)| now < begun.saturating_add(span));
                self.parts.push_back((now, times));
            }
        }
    }

    fn total(&self, now: u64) -> u64 {
        let within = |begun: u64| now < begun.saturating_add(self.span);
        let parts = self.parts.iter().filter(|(begun, _)| within(*begun));
        parts.map(|(_, sum)| sum).sum()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Records additions and deletions at one time.
    fn lately(trash: &mut Trash, added: u64, deleted: u64, now: u64) {
        trash.added.record(added, now);
        trash.deleted.record(deleted, now);
    }

    #[test]
    fn only_a_long_list_and_many_additions_together_put_off() {
        let mut trash = Trash::new();
        lately(&mut trash, 0, BEARABLE / 2, 0);
        assert!(!trash.puts_off(0, 0), "no addition walks along it");
        lately(&mut trash, 2, 0, 0);
        assert!(!trash.puts_off(0, 0));
        lately(&mut trash, 1, 0, 0);
        assert!(trash.puts_off(0, 0));
    }

    #[test]
    fn postponing_ends_with_the_additions_or_with_the_list() {
        let mut trash = Trash::new();
        lately(&mut trash, 1_000, 1_000, 0);
        assert!(trash.puts_off(0, RECENT - 1));
        assert!(!trash.puts_off(0, RECENT));
        lately(&mut trash, 1_000, 0, KEPT - 1);
        assert!(trash.puts_off(0, KEPT - 1));
        assert!(!trash.puts_off(0, KEPT));
    }

    #[test]
    fn not_too_many_wait() {
        let mut trash = Trash::new();
        lately(&mut trash, 10_000, 10_000, 0);
        assert!(trash.puts_off(MOST_WAITING - 1, 0));
        assert!(!trash.puts_off(MOST_WAITING, 0));
    }

    proptest! {
        /// A part is dropped when its start is too old: never too late, and at most a sixteenth of
        /// the time too early.
        #[test]
        fn a_total_is_right_to_a_sixteenth_of_its_time(
            notes in prop::collection::vec((0_u64..4_000, 0_u64..50), 0..200),
        ) {
            let mut recently = Recently::within(RECENT);
            let (mut now, mut all) = (0, Vec::new());
            for (pause, times) in notes {
                now += pause;
                recently.record(times, now);
                all.push((now, times));
                let since = |span| -> u64 {
                    let within = all.iter().filter(|(at, _)| now < at + span);
                    within.map(|(_, times)| times).sum()
                };
                let total = recently.total(now);
                prop_assert!(total <= since(RECENT) && total >= since(RECENT - RECENT / 16));
                prop_assert!(recently.parts.len() <= 17);
            }
        }
    }
}
