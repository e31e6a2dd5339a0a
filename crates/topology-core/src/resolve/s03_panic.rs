//! S3: turns topology off if there are too few endpoints.
//!
//! With fewer usable endpoints than `minEndpoints`, or `ready / all < panicPercent`, every usable endpoint gets the
//! same share. Not for hard policies, whose promise is stronger. Endpoints in drained and avoided domains do not count;
//! terminating ones are not part of all.
//!
//! Example: `panicPercent: 50`, 3 of 10 ready: 3/10 < 1/2, so each of the three gets a third. Source: Envoy's panic
//! threshold and its minimum cluster size for zone-aware routing.

use super::record::Fact;
use super::work::PortWork;
use super::{Note, s05_thresholds};
use crate::ratio::Ratio;

/// Turns topology off if too few endpoints remain.
pub(super) fn run(work: &mut PortWork<'_>) {
    turn_off(work);
    if let (true, Some(policy)) = (work.uniform, work.policy()) {
        // S5 does not run then.
        s05_thresholds::remember(work, policy);
    }
}

fn turn_off(work: &mut PortWork<'_>) {
    let Some(policy) = work.levelled().filter(|policy| !policy.is_bounded()) else {
        return;
    };
    let usable = work.chosen();
    if usable == 0 || (policy.min_endpoints <= 1 && policy.panic_percent == 0) {
        return;
    }
    let total = all(work);
    let fact = if usable < policy.min_endpoints {
        let least = policy.min_endpoints;
        Fact::TooFew { usable, least }
    } else if Ratio::is_below_percent(usable, total, policy.panic_percent) {
        let percent = policy.panic_percent;
        Fact::Panic {
            ready: usable,
            total,
            percent,
        }
    } else {
        return;
    };
    work.uniform = true;
    work.facts.push(fact);
    work.notes.push(Note::Panic);
}

fn all(work: &PortWork<'_>) -> u32 {
    let candidates = work.candidates.iter();
    let count = candidates.filter(|candidate| candidate.is_there()).count();
    u32::try_from(count).unwrap_or(u32::MAX)
}
