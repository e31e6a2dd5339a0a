//! S6: where the share of a level without endpoints goes.
//!
//! `cascade`: to the next outer level that has endpoints, and if there is none, to the nearest inner one.
//! `renormalize`: to all levels that have endpoints, in proportion to their shares.
//!
//! Example: 80/15/5 with no endpoint on the node: cascade gives 0/95/5 (Q08), renormalize 0/75/25 (Q09).

use super::Note;
use super::work::{Tier, Work};
use crate::policy::EmptyTier;
use crate::ratio::Ratio;

/// Moves the shares of empty levels.
pub(super) fn run(work: &mut Work<'_>) {
    if work.tiers.iter().all(|tier| tier.usable == 0) {
        return;
    }
    let held: Ratio = work
        .tiers
        .iter()
        .filter(|tier| tier.usable > 0)
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
        let level = work.tiers.get(at).map(|tier| tier.key.clone());
        let receiver = work.tiers.get_mut(to).map(|tier| {
            tier.share = tier.share + share;
            tier.key.clone()
        });
        if let Some(level) = level {
            work.notes.push(Note::EmptyLevel {
                level,
                share,
                to: receiver,
            });
        }
        if let Some(tier) = work.tiers.get_mut(at) {
            tier.share = Ratio::ZERO;
        }
    }
}

/// What the level at `at` has to give, and to whom.
fn gives(tiers: &[Tier], at: usize) -> Option<(Ratio, usize)> {
    let tier = tiers
        .get(at)
        .filter(|tier| tier.usable == 0 && !tier.share.is_zero())?;
    let filled = |index: &usize| tiers.get(*index).is_some_and(|tier| tier.usable > 0);
    let outer = (at + 1..tiers.len()).find(filled);
    let to = outer.or_else(|| (0..at).rev().find(filled))?;
    Some((tier.share, to))
}

fn renormalize(work: &mut Work<'_>, held: Ratio) {
    for tier in &mut work.tiers {
        if tier.usable > 0 {
            tier.share = tier.share / held;
        } else if !tier.share.is_zero() {
            work.notes.push(Note::EmptyLevel {
                level: tier.key.clone(),
                share: tier.share,
                to: None,
            });
            tier.share = Ratio::ZERO;
        }
    }
}
