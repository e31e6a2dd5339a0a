//! S10: computes integer weights.
//!
//! The weights are the smallest integers in proportion to the shares, or near enough: within half a point, and within a
//! tenth of a point or a twentieth of the share, for each level and for all its endpoints with the same share; see
//! [`crate::quantise`]. If a policy permits it, the farthest level is thinned out first, see [`super::subset`].
//!
//! The weights depend on the scheduler. If it does not achieve exactly their shares, S11 replaces the shares by those
//! that it does achieve ([`super::achieved`]).
//!
//! Example: 80, 15 and 5 % over 1, 3 and 6 endpoints are 80, 5 and 5/6 % each: weights 96, 6 and 1, exactly (Q06).
//! Source: the `wrr` scheduler of the kernel, whose long-run shares are the weights'.

use super::record::Fact;
use super::work::{LevelState, PortWork};
use super::{Note, subset};
use crate::quantise::{self, QuantiseMethod, Quantised};
use crate::ratio::Ratio;

/// Sets the weight of every chosen candidate, and the share that it results in.
pub(super) fn run(work: &mut PortWork<'_>) {
    let (asked, scheduler) = (work.asked_scheduler(), work.scheduler());
    if asked != scheduler {
        work.notes.push(Note::SchedulerMissing { asked });
    }
    subset::run(work);
    if work.classes.is_empty() {
        return;
    }
    let quantised = quantise::quantise_for(scheduler, &work.classes);
    weigh(work, &quantised);
    let facts = facts(work, &quantised);
    work.facts.extend(facts);
    if scheduler.keeps_weights() && quantised.method == QuantiseMethod::Clamped {
        work.notes.push(Note::WeightClamped { scheduler });
    }
    work.quantised = Some((quantised.method, quantised.cycle));
}

/// One fact for each weight of each class.
fn facts(work: &PortWork<'_>, quantised: &Quantised) -> Vec<Fact> {
    let parts = quantised.weights.iter().zip(&quantised.heavier);
    let facts = work.classes.iter().zip(parts).flat_map(|(class, parts)| {
        let (weight, heavier) = parts;
        [(class.count - heavier, *weight), (*heavier, weight + 1)]
            .into_iter()
            .filter(|(count, _)| *count > 0)
            .filter_map(|(count, weight)| {
                Some(Fact::Weight {
                    level: work.levels.get(class.level)?.key.clone(),
                    count,
                    share: class.share,
                    weight,
                })
            })
    });
    facts.collect()
}

fn weigh(work: &mut PortWork<'_>, quantised: &Quantised) {
    let mut parts: Vec<(u32, u32)> = quantised
        .weights
        .iter()
        .zip(&quantised.heavier)
        .map(|(weight, heavier)| (*weight, *heavier))
        .collect();
    let mut picks = vec![0_u64; work.levels.len()];
    for candidate in &mut work.candidates {
        let class = candidate.class.and_then(|class| parts.get_mut(class));
        let Some((weight, heavier)) = class else {
            continue;
        };
        candidate.weight = *weight + u32::from(*heavier > 0);
        *heavier = heavier.saturating_sub(1);
        candidate.share = Ratio::new(candidate.weight.into(), quantised.cycle);
        if let Some(picks) = candidate.level.and_then(|level| picks.get_mut(level)) {
            *picks += u64::from(candidate.weight);
        }
    }
    for (level, picks) in work.levels.iter_mut().zip(picks) {
        let level: &mut LevelState = level;
        level.achieved = Ratio::new(picks, quantised.cycle);
    }
}
