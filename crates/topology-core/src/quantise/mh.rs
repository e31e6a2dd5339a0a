//! Weights for `mh`, which keeps six bits of a weight and distributes 4,093 buckets.
//!
//! A weight above 63 times the common divisor loses its lower bits, so the largest weight is at most 63. If possible,
//! all weights together are at most 4,093; otherwise the real servers at the end of the list get no bucket.
//!
//! Example: 90 % and 10 % over 1 and 5 endpoints are 45 to 1 each: weights 45 and 1. 99 % and 1 % would be 495 to 1;
//! the nearest weights that `mh` distinguishes are 63 and 1, with shares of 92.6 % and 7.4 %.

use super::class::{Class, picks};
use super::groups::ShareGroups;
use super::quantised::{QuantiseMethod, Quantised, lowest_terms};
use crate::ratio::Ratio;
use crate::scheduler::{MH_BUCKETS, MH_WEIGHT};

/// The smallest weights within the tolerance; if there are none, the nearest.
pub(super) fn quantise(classes: &[Class]) -> Quantised {
    let groups = ShareGroups::of(classes);
    let mut best: Option<(Ratio, Vec<u32>)> = None;
    for largest in 1..=MH_WEIGHT {
        let weights = rounded(classes, largest);
        let picks = picks(classes, &weights);
        if best.is_some() && picks.iter().sum::<u64>() > u64::from(MH_BUCKETS) {
            break;
        }
        let excess = groups.excess(classes, &picks);
        if best.as_ref().is_none_or(|(least, _)| excess < *least) {
            best = Some((excess, weights));
        }
        if excess.is_zero() {
            break;
        }
    }
    let (excess, weights) = best.unwrap_or((Ratio::ZERO, Vec::new()));
    let method = if excess.is_zero() {
        method(classes, &weights)
    } else {
        QuantiseMethod::Clamped
    };
    Quantised::alike(classes, lowest_terms(weights), method)
}

/// `max(1, round(largest x share / largest share))`, halves rounded up.
fn rounded(classes: &[Class], largest: u32) -> Vec<u32> {
    let most = classes.iter().map(|class| class.share).max();
    let most = most.unwrap_or(Ratio::ONE);
    let weight = |class: &Class| {
        let scaled = class.share / most * Ratio::new(largest.into(), 1) + Ratio::new(1, 2);
        u32::try_from(scaled.numerator() / scaled.denominator())
            .unwrap_or(largest)
            .max(1)
    };
    classes.iter().map(weight).collect()
}

/// Exact if the weights are in the proportions of the shares.
fn method(classes: &[Class], weights: &[u32]) -> QuantiseMethod {
    let mut units = classes
        .iter()
        .zip(weights)
        .map(|(class, weight)| class.share / Ratio::new((*weight).into(), 1));
    let first = units.next();
    if units.all(|unit| Some(unit) == first) {
        QuantiseMethod::Exact
    } else {
        QuantiseMethod::Search
    }
}
