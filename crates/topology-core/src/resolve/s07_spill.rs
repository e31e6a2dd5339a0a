//! S7: levels that lost some of their endpoints pass a part of their share outward.
//!
//! A level can carry `a = min(1, overprovision x ready / all)`. From the inside out it keeps `own = share x a` and
//! accepts `min(carry, a - own)` of what inner levels could not keep; the rest is carried on. What the outermost level
//! cannot accept is divided among all in proportion.
//!
//! Example: prefer zone, overprovision 140, 5 of 10 ready there: a = 7/10, so 70 % stay and 30 % move on (Q26). Source:
//! Envoy's priority levels and their overprovisioning factor.

use super::record::Fact;
use super::work::PortWork;
use crate::ratio::Ratio;

/// Passes on the shares that levels cannot carry.
pub(super) fn run(work: &mut PortWork<'_>) {
    let overprovision = work.levelled().and_then(|policy| policy.overprovision);
    let Some(overprovision) = overprovision else {
        return;
    };
    if work.levels.iter().all(|level| level.counted == 0) {
        return;
    }
    let factor = Ratio::new(overprovision.into(), 100);
    let mut carry = Ratio::ZERO;
    let mut parts = Vec::with_capacity(work.levels.len());
    for level in &work.levels {
        let ready = Ratio::new(level.counted.into(), level.lasting.into());
        let available = (factor * ready).min(Ratio::ONE);
        let own = level.share * available;
        let accepted = carry.min(available - own);
        carry = carry - accepted + (level.share - own);
        parts.push((available, own, accepted));
    }
    let sum: Ratio = parts
        .iter()
        .map(|(_, own, accepted)| *own + *accepted)
        .sum();
    if sum.is_zero() {
        return;
    }
    for (level, (available, own, accepted)) in work.levels.iter_mut().zip(parts) {
        let before = level.share;
        level.share = (own + accepted) / sum;
        if level.merged_into.is_none() {
            work.facts.push(Fact::Spill {
                level: level.key.clone(),
                ready: level.counted,
                total: level.lasting,
                available,
                before,
                accepted,
                after: level.share,
            });
        }
    }
}
