//! S10: integer weights, see [`crate::quantise`].

use super::s09_share::class_of;
use super::work::Work;
use crate::quantise::{self, Class};
use crate::ratio::Ratio;

/// Gives every chosen candidate its weight, and the share that this achieves.
pub(super) fn run(work: &mut Work<'_>) {
    if work.classes.is_empty() {
        return;
    }
    let classes: Vec<Class> = work.classes.iter().map(|(_, class)| *class).collect();
    let quantised = quantise::quantise(&classes);
    for candidate in &mut work.candidates {
        let Some(wanted) = class_of(candidate) else {
            continue;
        };
        let at = work
            .classes
            .binary_search_by_key(&wanted, |(capacity, class)| (class.tier, *capacity));
        let weight = at.ok().and_then(|at| quantised.weights.get(at)).copied();
        candidate.weight = weight.unwrap_or_default();
        candidate.share = Ratio::new(candidate.weight.into(), quantised.cycle);
    }
    let achieved = quantise::achieved(&classes, &quantised.weights);
    for (tier, achieved) in work.tiers.iter_mut().zip(achieved) {
        tier.achieved = achieved;
    }
    work.quantised = Some((quantised.stage, quantised.cycle));
}
