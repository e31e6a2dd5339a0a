//! S8: limits each level to what its endpoints can carry.
//!
//! For the domain of a level, `u` is the part of all usable endpoints that are in it or in a nearer level, and `D` is
//! its part of the demand (see [`super::demand`]). If every domain did the same, its endpoints would carry `D / u` of
//! the average load. So at most `(1 + maxOverload) x u / D` may stay inside a level, including the nearer levels, which
//! are inside, too. The rest moves to the next outer level with endpoints. The outermost level has no cap, so a cap
//! never leaves a client without an endpoint. A domain without demand, or without this node, has no cap.
//!
//! Example: 2 of 12 endpoints and a third of the demand in the zone: 1/6 / (1/3) = 1/2 may stay, with 20 % overload 3/5
//! (Q33, Q32). Source: Envoy's zone-aware routing is the case of 0 %; Topology Aware Hints use 20 %.

use super::candidates::Candidate;
use super::decision::Note;
use super::demand;
use super::record::Fact;
use super::work::{LevelState, PortWork};
use crate::policy::{LevelKey, Policy, Residual};
use crate::ratio::Ratio;

/// A cap and its calculation.
struct Cap {
    endpoints: Ratio,
    demand: Ratio,
    most: Ratio,
}

/// Moves what exceeds the cap of a level outward.
pub(super) fn run(work: &mut PortWork<'_>) {
    let Some((policy, overload)) = work.levelled().zip(work.max_overload) else {
        return;
    };
    let Some(last) = work.levels.iter().rposition(|level| level.counted > 0) else {
        return;
    };
    let caps: Vec<Option<Cap>> = work
        .levels
        .iter()
        .enumerate()
        .take(last)
        .map(|level| cap(work, policy, level, overload))
        .collect();
    let before = sums(work.levels.iter().map(|level| level.share));
    let asked = sums(work.levels.iter().map(|level| level.desired));
    let after = bounded(&before, &caps);
    let mut residual = false;
    let mut inner = Ratio::ZERO;
    let mut turned_away = Ratio::ZERO;
    for (at, level) in work.levels.iter_mut().enumerate() {
        level.takes_residual = residual && policy.residual == Residual::Capacity;
        let sum = after.get(at).copied().unwrap_or(Ratio::ONE);
        let mut share = sum - inner + std::mem::replace(&mut turned_away, Ratio::ZERO);
        inner = sum;
        if level.counted == 0 {
            turned_away = std::mem::replace(&mut share, Ratio::ZERO);
        }
        level.share = share;
        let Some(cap) = caps.get(at).and_then(Option::as_ref) else {
            continue;
        };
        let would = before.get(at).copied().unwrap_or(Ratio::ONE);
        let desired = asked.get(at).copied().unwrap_or(Ratio::ONE);
        residual |= would.max(desired) > cap.most;
        work.facts.push(Fact::Cap {
            level: level.key.clone(),
            endpoints: cap.endpoints,
            demand: cap.demand,
            cap: cap.most,
            inside: would,
            passed: would - sum,
        });
        if would > cap.most {
            let level = level.key.clone();
            work.notes.push(Note::Capped {
                level,
                cap: cap.most,
            });
        }
    }
}

/// The largest share that may stay inside `level`, the one at `at`; `None` without a limit.
fn cap(
    work: &PortWork<'_>,
    policy: &Policy,
    (at, level): (usize, &LevelState),
    overload: u32,
) -> Option<Cap> {
    if level.merged_into.is_some() || level.key == LevelKey::Any {
        return None;
    }
    let demand = demand::of_level(work, &policy.demand, &level.key);
    if demand.is_zero() {
        return None;
    }
    let usable = || {
        let candidates = work.candidates.iter();
        candidates.filter(|candidate| candidate.reason.is_chosen())
    };
    let is_inside = |candidate: &&Candidate<'_>| candidate.level.is_some_and(|level| level <= at);
    let inside = usable().filter(is_inside).count();
    let endpoints = Ratio::new(inside as u64, usable().count() as u64);
    let factor = Ratio::new(100 + u64::from(overload), 100);
    let most = (factor * endpoints / demand).min(Ratio::ONE);
    Some(Cap {
        endpoints,
        demand,
        most,
    })
}

/// The cumulative sums.
fn sums(shares: impl Iterator<Item = Ratio>) -> Vec<Ratio> {
    let mut sum = Ratio::ZERO;
    shares
        .map(|share| {
            sum = sum + share;
            sum
        })
        .collect()
}

/// The share inside each level, limited by its cap and those of the levels around it.
fn bounded(sums: &[Ratio], caps: &[Option<Cap>]) -> Vec<Ratio> {
    let mut least = Ratio::ONE;
    let mut bounded = sums.to_vec();
    for (sum, cap) in bounded.iter_mut().zip(caps).rev() {
        least = least.min(cap.as_ref().map_or(Ratio::ONE, |cap| cap.most));
        *sum = (*sum).min(least);
    }
    for sum in bounded.iter_mut().skip(caps.len()) {
        *sum = Ratio::ONE;
    }
    bounded
}
