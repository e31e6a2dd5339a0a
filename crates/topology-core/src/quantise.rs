//! Converts shares to the integer weights of IPVS, for each scheduler.
//!
//! `wrr` gives every real server exactly weight / gcd picks per cycle (`net/netfilter/ipvs/ip_vs_wrr.c`), so integer
//! weights mean exact shares. Small weights mean short cycles and short runs on one real server. The stages below first
//! look for the smallest exact weights, then for the smallest weights within the tolerance.
//!
//! | stage | weights | accepted if |
//! |---|---|---|
//! | [`QuantiseMethod::Exact`] | shares x least common denominator | largest <= 256 |
//! | [`QuantiseMethod::Search`] | `max(1, round(m x share / largest share))`, smallest m <= 1,024 | every level, and in it all endpoints of one share, within [`tolerance`] |
//! | [`QuantiseMethod::WideExact`] | as exact | largest <= 65,535 |
//! | [`QuantiseMethod::WideSearch`] | as search, m <= 65,535 | as search |
//! | [`QuantiseMethod::Clamped`] | m = 65,535 | always; shares may be off |
//!
//! `mh` and `sh` distinguish only few weights, so they have their own rules. All other schedulers get the weights of
//! `wrr`.

mod class;
mod groups;
mod mh;
mod quantised;
mod search;
mod sh;
mod wrr;

use crate::ratio::{Ratio, gcd};
use crate::scheduler::Scheduler;
pub use class::Class;
use class::levels;
pub use groups::tolerance;
pub use quantised::{MAX_WEIGHT, QuantiseMethod, Quantised};
use search::Search;
pub use wrr::wrr;

/// The largest weight that the first stage accepts.
const EXACT_LIMIT: u32 = 256;
/// The largest weight of the first search.
const SEARCH_LIMIT: u32 = 1_024;

/// Returns the weights of `classes` for `scheduler`. The shares of all endpoints should add up to 1.
pub fn quantise_for(scheduler: Scheduler, classes: &[Class]) -> Quantised {
    match scheduler {
        Scheduler::Mh => mh::quantise(classes),
        Scheduler::Sh => sh::quantise(classes),
        Scheduler::Rr
        | Scheduler::Wrr
        | Scheduler::Lc
        | Scheduler::Wlc
        | Scheduler::Fo
        | Scheduler::Ovf
        | Scheduler::Lblc
        | Scheduler::Lblcr
        | Scheduler::Dh
        | Scheduler::Sed
        | Scheduler::Nq
        | Scheduler::Twos => quantise(classes),
    }
}

/// Returns the weights of `classes` for `wrr`.
pub fn quantise(classes: &[Class]) -> Quantised {
    let (weights, method) = match exact_weights(classes) {
        Some(exact) if is_small(&exact) => (exact, QuantiseMethod::Exact),
        exact => searched(classes, exact),
    };
    Quantised::alike(classes, weights, method)
}

/// The weights that a search finds, or the exact weights if these are smaller.
fn searched(classes: &[Class], exact: Option<Vec<u32>>) -> (Vec<u32>, QuantiseMethod) {
    let mut search = Search::new(classes);
    if let Some(weights) = search.up_to(SEARCH_LIMIT) {
        (weights, QuantiseMethod::Search)
    } else if let Some(exact) = exact {
        (exact, QuantiseMethod::WideExact)
    } else if let Some(weights) = search.up_to(MAX_WEIGHT) {
        (weights, QuantiseMethod::WideSearch)
    } else {
        (search.weights(), QuantiseMethod::Clamped)
    }
}

fn is_small(weights: &[u32]) -> bool {
    weights.iter().all(|weight| *weight <= EXACT_LIMIT)
}

/// Whether small weights are enough for `classes`: up to 1,024 for `wrr`, any for a scheduler that has only small ones.
pub(crate) fn has_small_weights(scheduler: Scheduler, classes: &[Class]) -> bool {
    if matches!(scheduler, Scheduler::Mh | Scheduler::Sh) {
        return quantise_for(scheduler, classes).method != QuantiseMethod::Clamped;
    }
    exact_weights(classes).is_some_and(|weights| is_small(&weights))
        || Search::new(classes).up_to(SEARCH_LIMIT).is_some()
}

/// The share of each level that `weights` result in, by the level's index.
pub fn achieved(classes: &[Class], weights: &[u32]) -> Vec<Ratio> {
    let mut picks = vec![0_u64; levels(classes)];
    for (class, weight) in classes.iter().zip(weights) {
        if let Some(picks) = picks.get_mut(class.level) {
            *picks += u64::from(class.count) * u64::from(*weight);
        }
    }
    let cycle = picks.iter().sum();
    picks
        .into_iter()
        .map(|picks| Ratio::new(picks, cycle))
        .collect()
}

/// Shares times their least common denominator, in lowest terms; `None` if a weight would exceed 65,535.
fn exact_weights(classes: &[Class]) -> Option<Vec<u32>> {
    let denominator = classes.iter().try_fold(1_u128, |lcm, class| {
        let other = class.share.denominator();
        lcm.checked_mul(other / gcd(lcm, other))
    })?;
    let scaled = |class: &Class| {
        class
            .share
            .numerator()
            .checked_mul(denominator / class.share.denominator())
    };
    let weights: Vec<u128> = classes.iter().map(scaled).collect::<Option<_>>()?;
    let common = weights
        .iter()
        .fold(0, |common, weight| gcd(common, *weight))
        .max(1);
    let fitting = |weight: &u128| {
        u32::try_from(weight / common)
            .ok()
            .filter(|weight| *weight <= MAX_WEIGHT)
    };
    weights.iter().map(fitting).collect()
}

#[cfg(test)]
mod tests;
