//! S4: the level of each endpoint.
//!
//! An endpoint is in the first level that it and this node share: the same Node by name, or the same non-empty
//! value of the level's label. A label that this node lacks matches nothing, not even endpoints that lack it too.
//! Without `*` an endpoint may be in no level; it is then never used.
//!
//! While this Node is unknown nothing can be told: a policy that ends in `*` treats all endpoints alike, any other
//! matches none.
//!
//! Example: on `n1` in zone `a`, levels `node, zone, *`: an endpoint on `n1` is in `node`, one on `n2` in zone `a`
//! in `zone`, one in zone `b` in `*`. Source: KEP-536, with shares.

use super::candidates::Candidate;
use super::categorize::Topology;
use super::reason::Reason;
use super::source::Rule;
use super::work::{Tier, Work};
use crate::policy::{LevelKey, Mode, Policy, ZONE};
use crate::ratio::Ratio;

/// Gives every candidate its level, and counts.
pub(super) fn run(work: &mut Work<'_>) {
    match work.rule {
        Rule::Policy(policy) if work.uniform || policy.mode == Mode::None => {
            work.one_tier(LevelKey::Any, |_| true);
        }
        Rule::Policy(policy) => by_policy(work, policy),
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
    work.count();
}

fn by_policy(work: &mut Work<'_>, policy: &Policy) {
    work.empty_tier = policy.empty_tier;
    work.tiers = tiers(policy);
    let levels: Vec<Option<usize>> = work
        .candidates
        .iter()
        .map(|candidate| level(work, policy, candidate))
        .collect();
    for (candidate, level) in work.candidates.iter_mut().zip(levels) {
        candidate.tier = level;
        if level.is_none() && candidate.reason.is_chosen() {
            candidate.reason = Reason::OutsideLevels;
        }
    }
}

/// The levels with their shares; if all weigh 0, the nearest takes all.
fn tiers(policy: &Policy) -> Vec<Tier> {
    let weights = policy.levels.iter().map(|level| u64::from(level.weight));
    let sum: u64 = weights.sum();
    let share = |at: usize, weight: u32| match (sum, at) {
        (0, 0) => Ratio::ONE,
        _ => Ratio::new(u64::from(weight), sum),
    };
    let tier = |(at, level): (usize, &crate::policy::Level)| {
        Tier::new(level.key.clone(), level.weight, share(at, level.weight))
    };
    policy.levels.iter().enumerate().map(tier).collect()
}

/// The index of the first level that `candidate` and this node share.
pub(super) fn level(work: &Work<'_>, policy: &Policy, candidate: &Candidate<'_>) -> Option<usize> {
    policy.levels.iter().position(|level| match &level.key {
        LevelKey::Any => true,
        LevelKey::Node => candidate.local,
        LevelKey::Label(key) => {
            let mine = work.own_node().and_then(|node| node.labels.get(key));
            // An empty value of ours equals nothing, since `label_of` leaves empty ones out.
            mine.is_some_and(|mine| work.label_of(candidate, key) == Some(mine))
        }
    })
}
