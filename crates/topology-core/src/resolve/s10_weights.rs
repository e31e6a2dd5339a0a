//! S10: integer weights.
//!
//! The shares of all endpoints become the smallest integers in proportion to them, or near enough: within half a point,
//! and within a tenth of a point or a twentieth of the share, level by level; see [`crate::quantise`]. Where a policy
//! allows it, the farthest level is thinned out first, see [`super::subset`].
//!
//! Example: 80, 15 and 5 % over 1, 3 and 6 endpoints are 80, 5 and 5/6 % each: weights 96, 6 and 1, exactly (Q06).
//! Source: the `wrr` scheduler of the kernel, whose long-run shares are the weights'.

use super::record::Fact;
use super::work::{Tier, Work};
use super::{Note, subset};
use crate::quantise::{self, Quantised, Stage};
use crate::ratio::Ratio;

/// Gives every chosen candidate its weight, and the share that this achieves.
pub(super) fn run(work: &mut Work<'_>) {
    subset::run(work);
    if work.classes.is_empty() {
        return;
    }
    let quantised = quantise::quantise(&work.classes);
    weigh(work, &quantised);
    let facts = work.classes.iter().zip(&quantised.weights);
    let facts = facts.filter_map(|(class, weight)| {
        Some(Fact::Weight {
            level: work.tiers.get(class.tier)?.key.clone(),
            count: class.count,
            share: class.share,
            weight: *weight,
        })
    });
    let facts: Vec<Fact> = facts.collect();
    work.facts.extend(facts);
    if quantised.stage == Stage::Clamped {
        work.notes.push(Note::WeightClamped);
    }
    work.quantised = Some((quantised.stage, quantised.cycle));
}

fn weigh(work: &mut Work<'_>, quantised: &Quantised) {
    let shares: Vec<(u32, Ratio)> = quantised
        .weights
        .iter()
        .map(|weight| (*weight, Ratio::new((*weight).into(), quantised.cycle)))
        .collect();
    let mut picks = vec![0_u64; work.tiers.len()];
    for candidate in &mut work.candidates {
        let Some((weight, share)) = candidate.class.and_then(|class| shares.get(class)) else {
            continue;
        };
        (candidate.weight, candidate.share) = (*weight, *share);
        if let Some(picks) = candidate.tier.and_then(|tier| picks.get_mut(tier)) {
            *picks += u64::from(*weight);
        }
    }
    for (tier, picks) in work.tiers.iter_mut().zip(picks) {
        let tier: &mut Tier = tier;
        tier.achieved = Ratio::new(picks, quantised.cycle);
    }
}
