//! Weights for `sh`, which distributes 256 buckets: in rounds, each real server gets as many in a row as its weight.
//!
//! With weights that add up to 256 there is exactly one round, and every real server gets its weight. So the shares of
//! 256 are rounded to whole buckets, at least one each; the remaining buckets go to the largest fractions. If all
//! shares are equal, each weight is 1, and the kernel distributes the buckets evenly. More than 256 endpoints cannot
//! all have a bucket.
//!
//! Example: 80, 15 and 5 % over 1, 3 and 6 endpoints are 204.8, 12.8 and 2.13 buckets each: 205, 13 and 2.

use super::class::{Class, picks};
use super::groups::ShareGroups;
use super::quantised::{QuantiseMethod, Quantised, lowest_terms};
use crate::ratio::Ratio;
use crate::scheduler::SH_BUCKETS;

/// Whole buckets in the proportions of the shares.
pub(super) fn quantise(classes: &[Class]) -> Quantised {
    let count: u64 = classes.iter().map(|class| u64::from(class.count)).sum();
    let first = classes.first().map(|class| class.share);
    if classes.iter().all(|class| Some(class.share) == first) {
        let method = if count > u64::from(SH_BUCKETS) {
            QuantiseMethod::Clamped
        } else {
            QuantiseMethod::Exact
        };
        return Quantised::alike(classes, vec![1; classes.len()], method);
    }
    if count > u64::from(SH_BUCKETS) {
        return Quantised::alike(classes, vec![1; classes.len()], QuantiseMethod::Clamped);
    }
    dealt(classes, &quotas(classes))
}

/// The exact number of buckets for each endpoint of a class, at least 1. Classes below 1 get one bucket, and the others
/// divide the rest.
fn quotas(classes: &[Class]) -> Vec<Ratio> {
    let mut lifted = vec![false; classes.len()];
    loop {
        let mut room = u64::from(SH_BUCKETS);
        let mut all = Ratio::ZERO;
        for (class, lifted) in classes.iter().zip(&lifted) {
            if *lifted {
                room -= u64::from(class.count);
            } else {
                all = all + class.share * Ratio::new(class.count.into(), 1);
            }
        }
        let quota = |(class, lifted): (&Class, &bool)| {
            if *lifted {
                Ratio::ONE
            } else {
                Ratio::new(room, 1) * class.share / all
            }
        };
        let quotas: Vec<Ratio> = classes.iter().zip(&lifted).map(quota).collect();
        if quotas.iter().all(|quota| *quota >= Ratio::ONE) {
            return quotas;
        }
        for (lifted, quota) in lifted.iter_mut().zip(&quotas) {
            *lifted |= *quota < Ratio::ONE;
        }
    }
}

/// Rounds `quotas` down and gives the remaining buckets to the largest fractions.
fn dealt(classes: &[Class], quotas: &[Ratio]) -> Quantised {
    let whole = |quota: &Ratio| u32::try_from(quota.numerator() / quota.denominator()).unwrap_or(1);
    let weights: Vec<u32> = quotas.iter().map(whole).collect();
    let dealt = |weights: &[u32]| picks(classes, weights).iter().sum::<u64>();
    let mut left = u64::from(SH_BUCKETS).saturating_sub(dealt(&weights));
    let mut heavier = vec![0; classes.len()];
    let fraction = |at: &usize| {
        let parts = quotas.get(*at).zip(weights.get(*at));
        parts.map_or(Ratio::ZERO, |(quota, weight)| {
            *quota - Ratio::new((*weight).into(), 1)
        })
    };
    let mut order: Vec<usize> = (0..classes.len()).collect();
    order.sort_by_key(|at| std::cmp::Reverse(fraction(at)));
    for at in order {
        if let Some((class, heavier)) = classes.get(at).zip(heavier.get_mut(at)) {
            *heavier = u32::try_from(left.min(class.count.into())).unwrap_or(0);
            left -= u64::from(*heavier);
        }
    }
    judged(classes, weights, heavier)
}

/// Classifies the weights as exact, within the tolerance, or clamped.
fn judged(classes: &[Class], weights: Vec<u32>, heavier: Vec<u32>) -> Quantised {
    let mut picks = picks(classes, &weights);
    for (picks, heavier) in picks.iter_mut().zip(&heavier) {
        *picks += u64::from(*heavier);
    }
    let cycle = picks.iter().sum();
    let desired = |class: &Class| class.share * Ratio::new(class.count.into(), 1);
    let mut both = classes.iter().zip(&picks);
    let method = if both.all(|(class, picks)| desired(class) == Ratio::new(*picks, cycle)) {
        QuantiseMethod::Exact
    } else if ShareGroups::of(classes).excess(classes, &picks).is_zero() {
        QuantiseMethod::Search
    } else {
        QuantiseMethod::Clamped
    };
    if heavier.iter().all(|count| *count == 0) {
        return Quantised::alike(classes, lowest_terms(weights), method);
    }
    Quantised {
        weights,
        heavier,
        method,
        cycle,
    }
}
