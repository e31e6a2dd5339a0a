//! The last step of S11: computes the shares that the scheduler achieves with the weights.
//!
//! For `wrr` they are those of the weights, which S10 has computed. For other schedulers, and for the influence of the
//! order of real servers, see [`crate::scheduler`].
//!
//! Example: weights 1 and 1 under `fo` are shares of 0 and 1.

use super::Note;
use super::work::{LevelState, PortWork};
use crate::quantise::tolerance;
use crate::ratio::Ratio;

/// Replaces the shares by those that the scheduler achieves. `order` has the candidate of each real server.
pub(super) fn run(work: &mut PortWork<'_>, order: &[usize]) {
    let scheduler = work.scheduler();
    if scheduler.keeps_weights() || work.classes.is_empty() {
        return;
    }
    let weights: Vec<u32> = work.real_servers.iter().map(|real| real.weight).collect();
    let shares = scheduler.shares(&weights, work.view.port.protocol, &work.view.destinations());
    for (at, share) in order.iter().zip(shares) {
        if let Some(candidate) = work.candidates.get_mut(*at) {
            candidate.share = share;
        }
    }
    sum_up(work);
    if is_off(work) {
        work.notes.push(Note::WeightClamped { scheduler });
    }
}

/// Sums the shares of the endpoints of each level.
fn sum_up(work: &mut PortWork<'_>) {
    let mut sums = vec![Ratio::ZERO; work.levels.len()];
    for candidate in &work.candidates {
        if let Some(sum) = candidate.level.and_then(|level| sums.get_mut(level)) {
            *sum = *sum + candidate.share;
        }
    }
    for (level, sum) in work.levels.iter_mut().zip(sums) {
        let level: &mut LevelState = level;
        level.achieved = sum;
    }
}

/// Whether the share of a level, including levels that merged into it, is outside the tolerance.
fn is_off(work: &PortWork<'_>) -> bool {
    let mut parts = vec![(Ratio::ZERO, Ratio::ZERO); work.levels.len()];
    for class in &work.classes {
        if let Some(part) = parts.get_mut(class.level) {
            part.0 = part.0 + class.share * Ratio::new(class.count.into(), 1);
        }
    }
    for candidate in &work.candidates {
        let class = candidate.class.and_then(|class| work.classes.get(class));
        if let Some(part) = class.and_then(|class| parts.get_mut(class.level)) {
            part.1 = part.1 + candidate.share;
        }
    }
    let off = |(desired, got): &(Ratio, Ratio)| got.distance(*desired) > tolerance(*desired);
    parts.iter().any(off)
}
