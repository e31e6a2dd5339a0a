//! S10: integer weights, see [`crate::quantise`].

use super::work::Work;
use crate::quantise::{self, Class};
use crate::ratio::Ratio;

/// Gives every chosen candidate its weight, and replaces its share by the one the weights achieve.
pub(super) fn weigh(work: &mut Work<'_>) {
    let filled = |tier: &super::work::Tier| tier.usable > 0 && !tier.share.is_zero();
    let classes: Vec<Class> = (work.tiers.iter().enumerate())
        .filter(|(_, tier)| filled(tier))
        .map(|(at, tier)| Class {
            tier: at,
            share: tier.share / Ratio::new(u64::from(tier.usable), 1),
            count: tier.usable,
        })
        .collect();
    if classes.is_empty() {
        return;
    }
    let quantised = quantise::quantise(&classes);
    for (class, weight) in classes.iter().zip(&quantised.weights) {
        let share = Ratio::new(u64::from(*weight), quantised.cycle);
        let of_class = |candidate: &&mut super::candidates::Candidate<'_>| {
            candidate.tier == Some(class.tier) && candidate.reason.is_chosen()
        };
        for candidate in work.candidates.iter_mut().filter(of_class) {
            candidate.weight = *weight;
            candidate.share = share;
        }
    }
    let achieved = quantise::achieved(&classes, &quantised.weights);
    for (tier, achieved) in work.tiers.iter_mut().zip(achieved) {
        tier.achieved = achieved;
    }
    work.quantised = Some((quantised.stage, quantised.cycle));
}
