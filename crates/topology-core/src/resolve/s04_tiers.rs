//! S4: the level of each endpoint, and the share of each level.
//!
//! An endpoint is in the first level that it and this node share: the same Node by name, or the same non-empty
//! value of the level's label. A label that this node lacks matches nothing, not even endpoints that lack it too.
//! Without `*` an endpoint may be in no level; it is then never used.
//!
//! The share of a level is `weight / sum of weights`; if all weigh 0, the nearest takes all. With endpoint bias it is
//! `weight x capacity of its usable endpoints` (a new one counts less), over the sum of these, so that an endpoint's
//! share goes by its own weight.
//!
//! A drain of clients that covers this node merges its own domain, and all nearer ones, into the next outer level.
//!
//! Example: on `n1` in zone `a`, levels `node, zone, *`: an endpoint on `n1` is in `node`, one on `n2` in zone `a`
//! in `zone`, one in zone `b` in `*`. Source: KEP-536, with shares.

use std::sync::Arc;

use smallvec::SmallVec;

use super::categorize::Topology;
use super::drains::covers_clients;
use super::reason::Reason;
use super::record::Fact;
use super::source::Rule;
use super::work::{Tier, Work};
use super::{s05_thresholds, s09_share};
use crate::policy::{Level, LevelKey, Policy, Weighting, ZONE};
use crate::ratio::Ratio;

/// Gives every level its share, and counts.
pub(super) fn run(work: &mut Work<'_>) {
    match work.rule {
        Rule::Policy(_) => match work.levelled() {
            Some(policy) => work.tiers = tiers(&policy.levels),
            None => work.one_tier(LevelKey::Any, |_| true),
        },
        Rule::Local => work.one_tier(LevelKey::Node, |candidate| candidate.local),
        Rule::KubeProxy(topology) => {
            let key = match topology {
                Topology::Anywhere => LevelKey::Any,
                Topology::SameNode => LevelKey::Node,
                Topology::SameZone => LevelKey::Label(ZONE.into()),
            };
            work.one_tier(key, |candidate| candidate.reason != Reason::HintedElsewhere);
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
    let fact = |tier: &Tier| Fact::Level {
        level: tier.key.clone(),
        weight: tier.configured,
        share: tier.share,
        usable: tier.usable,
        draining: tier.draining,
        total: tier.total,
    };
    work.facts.extend(work.tiers.iter().map(fact));
    leave_drained_domains(work);
}

/// The levels with their shares; if all weigh 0, the nearest takes all.
fn tiers(levels: &[Level]) -> Vec<Tier> {
    let sum: u64 = levels.iter().map(|level| u64::from(level.weight)).sum();
    let share = |at: usize, weight: u32| match (sum, at) {
        (0, 0) => Ratio::ONE,
        _ => Ratio::new(u64::from(weight), sum),
    };
    let tier = |(at, level): (usize, &Level)| {
        Tier::new(level.key.clone(), level.weight, share(at, level.weight))
    };
    levels.iter().enumerate().map(tier).collect()
}

/// Shares by the weight of each endpoint; where that is 0 for all usable ones, the shares stay as they are.
fn bias(work: &mut Work<'_>) {
    let mut biased = vec![0_u64; work.tiers.len()];
    for candidate in &work.candidates {
        let tier = candidate.tier.filter(|_| candidate.reason.is_chosen());
        let Some((at, tier)) = tier.and_then(|at| Some((at, work.tiers.get(at)?))) else {
            continue;
        };
        if let Some(sum) = biased.get_mut(at) {
            *sum += u64::from(tier.configured) * u64::from(candidate.capacity);
        }
    }
    let sum: u64 = biased.iter().sum();
    if sum == 0 {
        return;
    }
    for (tier, part) in work.tiers.iter_mut().zip(biased) {
        tier.wanted = Ratio::new(part, sum);
        tier.share = tier.wanted;
    }
}

/// Merges the levels that a drain of clients makes this node leave.
fn leave_drained_domains(work: &mut Work<'_>) {
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
    for at in 0..leave.min(work.tiers.len().saturating_sub(1)) {
        s05_thresholds::merge(work, at, None);
    }
}

/// Gives every candidate the first level that it and this node share.
pub(super) fn find_levels(work: &mut Work<'_>, policy: &Policy) {
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
        candidate.tier = levels.position(|(level, mine)| match &level.key {
            LevelKey::Any => true,
            LevelKey::Node => candidate.local,
            LevelKey::Label(key) => mine.is_some() && candidate.label(key) == *mine,
        });
    }
}
