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
use super::reason::Reason;
use super::work::{Tier, Work};
use super::{Note, Refusal};
use crate::policy::{LevelKey, Policy};
use crate::ratio::Ratio;

/// Gives every candidate its level, or says why the policy cannot.
pub(super) fn assign(work: &mut Work<'_>, policy: &Policy) {
    work.source = policy.source;
    work.mode = policy.mode;
    work.empty_tier = policy.empty_tier;
    if work.own_node().is_none() {
        work.notes.push(Note::OwnNodeUnknown);
        if policy.is_bounded() {
            work.refusal = Some(Refusal::OwnNodeUnknown);
        } else {
            work.one_tier(LevelKey::Any);
        }
        return;
    }
    work.tiers = tiers(policy);
    let assigned: Vec<_> = work
        .candidates
        .iter()
        .map(|candidate| level(work, policy, candidate))
        .collect();
    for (candidate, tier) in work.candidates.iter_mut().zip(assigned) {
        candidate.tier = tier;
        candidate.reason = if tier.is_some() {
            Reason::InLevel
        } else {
            Reason::OutsideLevels
        };
    }
}

/// The levels with their shares; if all weigh 0, the nearest takes all.
fn tiers(policy: &Policy) -> Vec<Tier> {
    let sum: u64 = policy
        .levels
        .iter()
        .map(|level| u64::from(level.weight))
        .sum();
    let share = |at: usize, weight: u32| match (sum, at) {
        (0, 0) => Ratio::ONE,
        _ => Ratio::new(u64::from(weight), sum),
    };
    let tier = |(at, level): (usize, &crate::policy::Level)| {
        Tier::new(level.key.clone(), level.weight, share(at, level.weight))
    };
    policy.levels.iter().enumerate().map(tier).collect()
}

fn level(work: &Work<'_>, policy: &Policy, candidate: &Candidate<'_>) -> Option<usize> {
    policy.levels.iter().position(|level| match &level.key {
        LevelKey::Any => true,
        LevelKey::Node => candidate.local,
        LevelKey::Label(key) => {
            let mine = work
                .own_node()
                .and_then(|node| node.labels.get(key))
                .filter(|value| !value.is_empty());
            mine.is_some_and(|mine| work.label_of(candidate, key) == Some(mine))
        }
    })
}
