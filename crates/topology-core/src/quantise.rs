//! From shares to the integer weights of IPVS, for the scheduler that reads them.
//!
//! `wrr` gives every real server exactly weight / gcd picks per cycle (`net/netfilter/ipvs/ip_vs_wrr.c`), so
//! integer weights mean exact shares. Small weights mean short cycles and short runs on one real server; the
//! stages below look for the smallest that are exact, then for the smallest that are near enough.
//!
//! | stage | weights | accepted if |
//! |---|---|---|
//! | [`QuantiseMethod::Exact`] | shares x least common denominator | largest <= 256 |
//! | [`QuantiseMethod::Search`] | `max(1, round(m x share / largest share))`, smallest m <= 1,024 | every level, and in it all endpoints of one share, within [`tolerance`] |
//! | [`QuantiseMethod::WideExact`] | as exact | largest <= 65,535 |
//! | [`QuantiseMethod::WideSearch`] | as search, m <= 65,535 | as search |
//! | [`QuantiseMethod::Clamped`] | m = 65,535 | always; shares may be off |
//!
//! `mh` and `sh` tell few weights apart: they have rules of their own. Every other scheduler gets the weights of `wrr`.

mod groups;
mod mh;
mod search;
mod sh;
mod wrr;

use crate::ratio::{Ratio, gcd};
use crate::scheduler::Scheduler;
use search::Search;
pub use wrr::wrr;

/// The largest weight ever given to a real server.
pub const MAX_WEIGHT: u32 = 65_535;
/// The largest weight the first stage accepts.
const EXACT_LIMIT: u32 = 256;
/// How far the first search goes.
const SEARCH_LIMIT: u32 = 1_024;

/// Endpoints of one level that get the same share each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Class {
    /// The level, for the tolerance, which is judged for the level and for its endpoints of the same share.
    pub level: usize,
    /// The desired share of each endpoint, > 0.
    pub share: Ratio,
    /// How many endpoints, > 0.
    pub count: u32,
}

/// How the weights were found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum QuantiseMethod {
    /// Exact, largest weight at most 256.
    Exact,
    /// Rounded, within the tolerance, m at most 1,024.
    Search,
    /// Exact, largest weight at most 65,535.
    WideExact,
    /// Rounded, within the tolerance, m at most 65,535.
    WideSearch,
    /// The largest weight is 65,535 and some share is outside the tolerance.
    Clamped,
}

impl QuantiseMethod {
    /// The word for it in output.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Search => "search",
            Self::WideExact => "wide-exact",
            Self::WideSearch => "wide-search",
            Self::Clamped => "clamped",
        }
    }
}

/// Weights, one for each class.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Quantised {
    /// The weight of each endpoint of the class, 1 to 65,535; their greatest common divisor is 1.
    pub weights: Vec<u32>,
    /// How many endpoints of the class weigh one more; only `sh` needs that.
    pub heavier: Vec<u32>,
    /// How they were found.
    pub method: QuantiseMethod,
    /// The sum of all endpoints' weights: the picks in one cycle of `wrr`.
    pub cycle: u64,
}

/// The weights of `classes`, whose shares should sum up to 1 over all endpoints, for this scheduler.
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

/// The weights of `classes` for `wrr`.
pub fn quantise(classes: &[Class]) -> Quantised {
    let (weights, method) = match exact_weights(classes) {
        Some(exact) if is_small(&exact) => (exact, QuantiseMethod::Exact),
        exact => searched(classes, exact),
    };
    Quantised::alike(classes, weights, method)
}

impl Quantised {
    /// Weights under which the endpoints of a class are alike.
    fn alike(classes: &[Class], weights: Vec<u32>, method: QuantiseMethod) -> Self {
        Self {
            heavier: vec![0; weights.len()],
            cycle: picks(classes, &weights).iter().sum(),
            weights,
            method,
        }
    }
}

/// The weights that a search finds; those that are exact if they are better than going far.
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

/// How far the achieved share of a level, or of all its endpoints that want the same, may be from the `desired` one:
/// at most 0.5 points, and at most the larger of 0.1 points and 5 % of the share.
pub fn tolerance(desired: Ratio) -> Ratio {
    let relative = (desired * Ratio::new(5, 100)).max(Ratio::new(1, 1_000));
    relative.min(Ratio::new(5, 1_000))
}

/// The share of each level that `weights` achieve, by the level's index.
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

/// One more than the largest index of a level.
fn levels(classes: &[Class]) -> usize {
    let indices = classes.iter().map(|class| class.level + 1);
    indices.max().unwrap_or(0)
}

/// What the endpoints of each class weigh together.
fn picks(classes: &[Class], weights: &[u32]) -> Vec<u64> {
    let both = classes.iter().zip(weights);
    both.map(|(class, weight)| u64::from(class.count) * u64::from(*weight))
        .collect()
}

/// The same proportions in the smallest numbers.
fn lowest_terms(mut weights: Vec<u32>) -> Vec<u32> {
    let common = weights
        .iter()
        .fold(0, |common, weight| gcd(common, u128::from(*weight)));
    let common = u32::try_from(common).unwrap_or(1).max(1);
    for weight in &mut weights {
        *weight /= common;
    }
    weights
}

/// Shares times their least common denominator, in lowest terms; none if a weight would exceed 65,535.
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
