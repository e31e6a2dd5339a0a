//! S9: the share of each endpoint.
//!
//! The endpoints of a level share alike. An endpoint whose level has no share is not used.
//!
//! Example: level `zone` has 15 % and three endpoints: 5 % each.

use super::reason::Reason;
use super::work::Work;
use crate::ratio::Ratio;

/// Splits the share of each level among its endpoints.
pub(super) fn spread(work: &mut Work<'_>) {
    let each: Vec<Ratio> = work
        .tiers
        .iter()
        .map(|tier| tier.share / Ratio::new(u64::from(tier.usable), 1))
        .collect();
    for candidate in work
        .candidates
        .iter_mut()
        .filter(|candidate| candidate.reason.is_chosen())
    {
        let share = candidate
            .tier
            .and_then(|tier| each.get(tier))
            .copied()
            .unwrap_or(Ratio::ZERO);
        candidate.share = share;
        if share.is_zero() {
            candidate.reason = Reason::NearerLevelTakesAll;
        }
    }
}
