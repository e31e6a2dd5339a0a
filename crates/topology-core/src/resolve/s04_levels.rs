//! S4: assigns a level to each endpoint and a share to each level.
//!
//! An endpoint is in the first level that it shares with this node: the same Node by name, or the same non-empty value
//! of the level's label. A label that this node lacks matches nothing, not even endpoints that lack it, too. Without
//! `*` an endpoint may be in no level, and is then never used.
//!
//! The share of a level is `weight / sum of weights`; if all are 0, the nearest level takes all. With endpoint bias it
//! is `weight x capacity of its usable endpoints` (a new endpoint counts less), over the sum of these, so that the
//! weight applies to each endpoint.
//!
//! A drain of clients that covers this node merges the drained level, and all nearer ones, into the next outer level.
//!
//! Example: on `n1` in zone `a` with levels `node, zone, *`: an endpoint on `n1` is in `node`, one on `n2` in zone `a`
//! is in `zone`, one in zone `b` is in `*`. Source: KEP-536, with shares.

use std::sync::Arc;

use smallvec::SmallVec;

use super::categorize::Topology;
use super::drains::covers_clients;
use super::reason::Reason;
use super::record::Fact;
use super::source::DecidingRule;
use super::work::{LevelState, PortWork};
use super::{s05_thresholds, s09_share};
use crate::policy::{Level, LevelKey, Policy, Weighting, ZONE};
use crate::ratio::Ratio;

/// Assigns shares to levels, and counts their endpoints.
pub(super) fn run(work: &mut PortWork<'_>) {
    match work.rule {
        DecidingRule::Policy(_) => match work.levelled() {
            Some(policy) => work.levels = levels(&policy.levels),
            None => work.one_level(LevelKey::Any, |_| true),
        },
        DecidingRule::Local => work.one_level(LevelKey::Node, |candidate| candidate.local),
        DecidingRule::KubeProxy(topology) => {
            let key = match topology {
                Topology::Anywhere => LevelKey::Any,
                Topology::SameNode => LevelKey::Node,
                Topology::SameZone => LevelKey::Label(ZONE.into()),
            };
            work.one_level(key, |candidate| candidate.reason != Reason::HintedElsewhere);
        }
    }
    s09_share::read_capacities(work);
    work.count();
    if let Some(policy) = work.levelled() {
        work.empty_tier = policy.empty_tier;
        if policy.weighting == Weighting::EndpointBias {
            bias(work);
        }
    }
    let fact = |level: &LevelState| Fact::Level {
        level: level.key.clone(),
        weight: level.configured,
        share: level.share,
        usable: level.usable,
        draining: level.draining,
        total: level.total,
    };
    work.facts.extend(work.levels.iter().map(fact));
    leave_drained_domains(work);
}

/// The levels with their shares; if all weights are 0, the nearest takes all.
fn levels(levels: &[Level]) -> Vec<LevelState> {
    let sum: u64 = levels.iter().map(|level| u64::from(level.weight)).sum();
    let share = |at: usize, weight: u32| match (sum, at) {
        (0, 0) => Ratio::ONE,
        _ => Ratio::new(u64::from(weight), sum),
    };
    let level = |(at, level): (usize, &Level)| {
        LevelState::new(level.key.clone(), level.weight, share(at, level.weight))
    };
    levels.iter().enumerate().map(level).collect()
}

/// Computes shares from the weight of each endpoint; if they are 0 for all usable ones, the shares do not change.
fn bias(work: &mut PortWork<'_>) {
    let mut biased = vec![0_u64; work.levels.len()];
    for candidate in &work.candidates {
        let level = candidate.level.filter(|_| candidate.reason.is_chosen());
        let Some((at, level)) = level.and_then(|at| Some((at, work.levels.get(at)?))) else {
            continue;
        };
        if let Some(sum) = biased.get_mut(at) {
            *sum += u64::from(level.configured) * u64::from(candidate.capacity);
        }
    }
    let sum: u64 = biased.iter().sum();
    if sum == 0 {
        return;
    }
    for (level, part) in work.levels.iter_mut().zip(biased) {
        level.desired = Ratio::new(part, sum);
        level.share = level.desired;
    }
}

/// Merges the levels that a drain of clients keeps this node from preferring.
fn leave_drained_domains(work: &mut PortWork<'_>) {
    let Some(policy) = work.levelled() else {
        return;
    };
    let covering: SmallVec<[LevelKey; 2]> = work
        .drains
        .iter()
        .filter(|active| covers_clients(active.drain, work.view))
        .map(|active| active.drain.key.clone())
        .collect();
    let left = |key: &LevelKey| {
        let at = policy.levels.iter().position(|level| level.key == *key);
        let node = || {
            policy
                .levels
                .iter()
                .position(|level| level.key == LevelKey::Node)
        };
        at.or_else(node).map_or(0, |at| at + 1)
    };
    let leave = covering.iter().map(left).max().unwrap_or(0);
    for at in 0..leave.min(work.levels.len().saturating_sub(1)) {
        s05_thresholds::merge(work, at, None);
    }
}

/// Assigns to every candidate the first level that it shares with this node.
pub(super) fn find_levels(work: &mut PortWork<'_>, policy: &Policy) {
    let own: SmallVec<[Option<&Arc<str>>; 4]> = policy
        .levels
        .iter()
        .map(|level| match &level.key {
            LevelKey::Label(key) => work.own_label(key),
            LevelKey::Node | LevelKey::Any => None,
        })
        .collect();
    for candidate in &mut work.candidates {
        let mut levels = policy.levels.iter().zip(&own);
        candidate.level = levels.position(|(level, mine)| match &level.key {
            LevelKey::Any => true,
            LevelKey::Node => candidate.local,
            LevelKey::Label(key) => mine.is_some() && candidate.label(key) == *mine,
        });
    }
}
