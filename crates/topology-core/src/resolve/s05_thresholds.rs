//! S5: merges levels with too few ready endpoints outward.
//!
//! A level with `ready < minReadyEndpoints` or `ready / all < minReadyPercent` counts as part of the next outer one:
//! its endpoints get the same share as those there, and its share is added. Inner levels come first, so that a level is
//! checked with those that merged into it. The outermost never merges. A level without any ready endpoint does not
//! merge but is empty (S6). Terminating endpoints are not part of all.
//!
//! **Recovery hold**: a level that lost endpoints counts what it had left until it has had more for `recoveryHold`
//! seconds. Then it counts the minimum of that time. It shrinks at once. While a drain ramps, its endpoints are not lost:
//! the part of the traffic without it counts, and the hold applies to all parts. Losses count also while all endpoints
//! get the same share, and while this Node is unknown nothing changes.
//!
//! Example: zone 80, `*` 20; zone needs two endpoints and has one; eight are elsewhere: all nine get the same share
//! (Q21). Source: the merging is our own design; the hold prevents the hotspot on the first pod that comes back in
//! Envoy and Istio.

use super::Note;
use super::record::Fact;
use super::work::{LevelState, PortWork};
use crate::memory::RecoveryHold;
use crate::policy::{LevelKey, MinReady, Mode, Policy};
use crate::ratio::Ratio;

/// Merges levels that have too few endpoints.
pub(super) fn run(work: &mut PortWork<'_>) {
    let Some(policy) = work.levelled() else {
        return;
    };
    hold(work, policy);
    let outermost = policy.levels.len().saturating_sub(1);
    for (at, configured) in policy.levels.iter().enumerate().take(outermost) {
        let lacks = work.levels.get(at).is_some_and(|level| {
            level.merged_into.is_none() && level.counted > 0 && lacks(level, configured.min_ready)
        });
        if lacks {
            merge(work, at, Some(configured.min_ready));
        }
    }
}

fn lacks(level: &LevelState, need: MinReady) -> bool {
    level.counted < need.count
        || Ratio::is_below_percent(level.counted, level.lasting, need.percent)
}

/// Merges the level at `at` into the next outer one.
pub(super) fn merge(work: &mut PortWork<'_>, at: usize, need: Option<MinReady>) {
    let Ok([inner, outer]) = work.levels.get_disjoint_mut([at, at + 1]) else {
        return;
    };
    let fact = Fact::Merged {
        level: inner.key.clone(),
        into: outer.key.clone(),
        usable: inner.counted,
        total: inner.lasting,
        need,
    };
    outer.share = outer.share + std::mem::replace(&mut inner.share, Ratio::ZERO);
    outer.counted += std::mem::take(&mut inner.counted);
    outer.lasting += std::mem::take(&mut inner.lasting);
    inner.merged_into = Some(at + 1);
    let (level, into) = (inner.key.clone(), outer.key.clone());
    if need.is_some() {
        work.notes.push(Note::Merged { level, into });
    }
    work.facts.push(fact);
}

/// Lets levels count what the recovery hold permits; or everything, if otherwise no endpoint would count.
fn hold(work: &mut PortWork<'_>, policy: &Policy) {
    let held = remember(work, policy);
    let mut facts = Vec::new();
    for (level, (key, state)) in work.levels.iter().zip(&held) {
        if let Some((since, _)) = state.growing.filter(|_| level.usable > state.counted) {
            facts.push(Fact::Held {
                level: key.clone(),
                usable: level.usable,
                counted: state.counted,
                until: since.saturating_add(milliseconds(policy)),
            });
        }
    }
    work.facts.extend(facts);
    let counted = |level: &LevelState, state: RecoveryHold| level.usable.min(state.counted);
    let mut pairs = work.levels.iter().zip(&held);
    if !pairs.any(|(level, (_, state))| counted(level, *state) > 0) {
        return;
    }
    for (level, (_, state)) in work.levels.iter_mut().zip(&held) {
        // A merged level counts with the one that it merged into.
        if level.merged_into.is_none() && level.counted > 0 {
            level.counted -= level.usable - counted(level, *state);
        }
    }
}

/// The recovery hold of `policy`.
fn milliseconds(policy: &Policy) -> i64 {
    i64::from(policy.recovery_hold) * 1_000
}

/// Counts the endpoints of the levels, and stores the counts for later decisions. A part of the traffic that continues
/// from the counts of another part does not change them. Empty without a recovery hold.
pub(super) fn remember(work: &mut PortWork<'_>, policy: &Policy) -> Vec<(LevelKey, RecoveryHold)> {
    let is_held = policy.recovery_hold > 0 && policy.mode != Mode::None;
    let Some(now) = work.me().now.filter(|_| is_held) else {
        return Vec::new();
    };
    let memory = work.memory.get_or_insert_default();
    if !memory.held.is_empty() {
        return memory.held.clone();
    }
    let held = count(work, policy, now);
    work.memory.get_or_insert_default().held.clone_from(&held);
    held
}

/// The counts of the levels now.
fn count(work: &mut PortWork<'_>, policy: &Policy, now: i64) -> Vec<(LevelKey, RecoveryHold)> {
    let known = work
        .me()
        .memory
        .of(&work.view.service.name, &work.view.key());
    let known = known.map_or(&[][..], |known| &known.held);
    if work.own_node().is_none() {
        return known.to_vec();
    }
    let duration = milliseconds(policy);
    let mut held = Vec::with_capacity(policy.levels.len());
    for (level, usable) in policy.levels.iter().zip(usable(work, policy)) {
        let earlier = known.iter().find(|(key, _)| *key == level.key);
        let state = next(earlier.map(|(_, held)| *held), usable, now, duration);
        held.push((level.key.clone(), state));
    }
    for (_, state) in &held {
        if let Some((since, _)) = state.growing {
            work.ask_at(since.saturating_add(duration));
        }
    }
    held
}

/// The number of usable endpoints of each level.
fn usable(work: &PortWork<'_>, policy: &Policy) -> Vec<u32> {
    let mut usable = vec![0; policy.levels.len()];
    let candidates = work.candidates.iter();
    let chosen = candidates.filter(|candidate| candidate.reason.is_chosen());
    for level in chosen.filter_map(|candidate| candidate.level) {
        if let Some(count) = usable.get_mut(level) {
            *count += 1;
        }
    }
    usable
}

/// The count of a level with `usable` endpoints now.
fn next(earlier: Option<RecoveryHold>, usable: u32, now: i64, hold: i64) -> RecoveryHold {
    let settled = |counted| RecoveryHold {
        counted,
        growing: None,
    };
    let Some(earlier) = earlier.filter(|earlier| usable > earlier.counted) else {
        return settled(usable);
    };
    let (since, fewest) = earlier.growing.unwrap_or((now, usable));
    let fewest = fewest.min(usable);
    if now.saturating_sub(since) < hold {
        return RecoveryHold {
            counted: earlier.counted,
            growing: Some((since, fewest)),
        };
    }
    RecoveryHold {
        counted: fewest,
        growing: (usable > fewest).then_some((now, usable)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The counts of a level with so many endpoints at these times, with a hold of ten.
    fn counted(history: &[(i64, u32)]) -> Vec<u32> {
        let mut state = None;
        let step = |(now, usable): &(i64, u32)| {
            let held = next(state, *usable, *now, 10);
            state = Some(held);
            held.counted
        };
        history.iter().map(step).collect()
    }

    #[test]
    fn growing_waits_and_shrinking_does_not() {
        assert_eq!(
            counted(&[(0, 4), (1, 2), (2, 4), (11, 4), (12, 4)]),
            [4, 2, 2, 2, 4]
        );
    }

    #[test]
    fn after_the_hold_the_fewest_since_then_count() {
        assert_eq!(
            counted(&[(0, 1), (1, 5), (5, 3), (11, 4), (21, 4)]),
            [1, 1, 1, 3, 4]
        );
    }

    #[test]
    fn a_level_that_falls_back_restarts_its_wait() {
        assert_eq!(
            counted(&[(0, 2), (1, 3), (9, 2), (10, 3), (12, 3), (20, 3)]),
            [2, 2, 2, 2, 2, 3]
        );
    }
}
