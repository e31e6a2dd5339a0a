//! S6: passes on the share of a level without endpoints.
//!
//! `cascade`: to the next outer level with endpoints, or if there is none, to the nearest inner one. `renormalize`: to
//! all levels with endpoints, in proportion to their shares.
//!
//! Example: 80/15/5 without an endpoint on the node: cascade gives 0/95/5 (Q08), renormalize 0/75/25 (Q09). Source:
//! cascade keeps "nearest first"; renormalize is the rule of Envoy and Istio.

use super::Note;
use super::record::Fact;
use super::work::{LevelState, PortWork};
use crate::policy::{EmptyTier, LevelKey};
use crate::ratio::Ratio;

/// Moves the shares of empty levels.
pub(super) fn run(work: &mut PortWork<'_>) {
    if work.levels.iter().all(|level| level.counted == 0) {
        return;
    }
    let held: Ratio = work
        .levels
        .iter()
        .filter(|level| level.counted > 0)
        .map(|level| level.share)
        .sum();
    match work.empty_tier {
        EmptyTier::Renormalize if !held.is_zero() => renormalize(work, held),
        EmptyTier::Renormalize | EmptyTier::Cascade => cascade(work),
    }
}

fn cascade(work: &mut PortWork<'_>) {
    for at in 0..work.levels.len() {
        let Some((share, to)) = gives(&work.levels, at) else {
            continue;
        };
        let level = work.levels.get_mut(at).map(|level| {
            level.share = Ratio::ZERO;
            level.key.clone()
        });
        let receiver = work.levels.get_mut(to).map(|level| {
            level.share = level.share + share;
            level.key.clone()
        });
        if let Some(level) = level {
            add_note(work, level, share, receiver);
        }
    }
}

fn add_note(work: &mut PortWork<'_>, level: LevelKey, share: Ratio, to: Option<LevelKey>) {
    work.facts.push(Fact::Emptied {
        level: level.clone(),
        share,
        to: to.clone(),
    });
    work.notes.push(Note::EmptyLevel { level, share, to });
}

/// The share that the level at `at` passes on, and the level that gets it.
fn gives(levels: &[LevelState], at: usize) -> Option<(Ratio, usize)> {
    let level = levels
        .get(at)
        .filter(|level| level.counted == 0 && !level.share.is_zero())?;
    let filled = |index: &usize| levels.get(*index).is_some_and(|level| level.counted > 0);
    let outer = (at + 1..levels.len()).find(filled);
    let to = outer.or_else(|| (0..at).rev().find(filled))?;
    Some((level.share, to))
}

fn renormalize(work: &mut PortWork<'_>, held: Ratio) {
    let mut emptied = Vec::new();
    for level in &mut work.levels {
        if level.counted > 0 {
            level.share = level.share / held;
        } else if !level.share.is_zero() {
            emptied.push((level.key.clone(), level.share));
            level.share = Ratio::ZERO;
        }
    }
    for (level, share) in emptied {
        add_note(work, level, share, None);
    }
}
