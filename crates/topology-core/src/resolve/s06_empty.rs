//! S6: where the share of a level without endpoints goes.
//!
//! `cascade`: to the next outer level that has endpoints, and if there is none, to the nearest inner one.
//! `renormalize`: to all levels that have endpoints, in proportion to their shares.
//!
//! Example: 80/15/5 with no endpoint on the node: cascade gives 0/95/5 (Q08), renormalize 0/75/25 (Q09). Source:
//! cascade keeps "nearest first"; renormalize is what Envoy and Istio do.

use super::Note;
use super::record::Fact;
use super::work::{Tier, Work};
use crate::policy::{EmptyTier, LevelKey};
use crate::ratio::Ratio;

/// Moves the shares of empty levels.
pub(super) fn run(work: &mut Work<'_>) {
    if work.tiers.iter().all(|tier| tier.counted == 0) {
        return;
    }
    let held: Ratio = work
        .tiers
        .iter()
        .filter(|tier| tier.counted > 0)
        .map(|tier| tier.share)
        .sum();
    match work.empty_tier {
        EmptyTier::Renormalize if !held.is_zero() => renormalize(work, held),
        EmptyTier::Renormalize | EmptyTier::Cascade => cascade(work),
    }
}

fn cascade(work: &mut Work<'_>) {
    for at in 0..work.tiers.len() {
        let Some((share, to)) = gives(&work.tiers, at) else {
            continue;
        };
        let level = work.tiers.get_mut(at).map(|tier| {
            tier.share = Ratio::ZERO;
            tier.key.clone()
        });
        let receiver = work.tiers.get_mut(to).map(|tier| {
            tier.share = tier.share + share;
            tier.key.clone()
        });
        if let Some(level) = level {
            note(work, level, share, receiver);
        }
    }
}

fn note(work: &mut Work<'_>, level: LevelKey, share: Ratio, to: Option<LevelKey>) {
    work.facts.push(Fact::Emptied {
        level: level.clone(),
        share,
        to: to.clone(),
    });
    work.notes.push(Note::EmptyLevel { level, share, to });
}

/// What the level at `at` has to give, and to whom.
fn gives(tiers: &[Tier], at: usize) -> Option<(Ratio, usize)> {
    let tier = tiers
        .get(at)
        .filter(|tier| tier.counted == 0 && !tier.share.is_zero())?;
    let filled = |index: &usize| tiers.get(*index).is_some_and(|tier| tier.counted > 0);
    let outer = (at + 1..tiers.len()).find(filled);
    let to = outer.or_else(|| (0..at).rev().find(filled))?;
    Some((tier.share, to))
}

fn renormalize(work: &mut Work<'_>, held: Ratio) {
    let mut emptied = Vec::new();
    for tier in &mut work.tiers {
        if tier.counted > 0 {
            tier.share = tier.share / held;
        } else if !tier.share.is_zero() {
            emptied.push((tier.key.clone(), tier.share));
            tier.share = Ratio::ZERO;
        }
    }
    for (level, share) in emptied {
        note(work, level, share, None);
    }
}
