//! S10 for `sh`: 256 buckets; every endpoint gets at least one, and its share of the rest.

use std::collections::BTreeMap;

use super::{Id, Kind, beyond};
use crate::frac::{Frac, ONE, ZERO, frac};

const BUCKETS: i128 = 256;

/// The whole buckets of an endpoint of each kind; 1 if all are equal or too many.
pub(super) fn whole(kinds: &[Kind]) -> Vec<i128> {
    match parts(kinds) {
        Some(parts) => parts.into_iter().map(|part| part.n / part.d).collect(),
        None => vec![1; kinds.len()],
    }
}

/// Whether the result with the remaining buckets is within the tolerance.
pub(super) fn are_fair(kinds: &[Kind]) -> bool {
    let Some(parts) = parts(kinds) else {
        return endpoints(kinds) <= BUCKETS;
    };
    let mut picks: Vec<i128> = kinds
        .iter()
        .zip(whole(kinds))
        .map(|(kind, whole)| kind.count * whole)
        .collect();
    let mut left = BUCKETS - picks.iter().sum::<i128>();
    // One at a time to the largest fraction; the first of equal ones.
    let mut fractions: Vec<(Frac, i128)> = parts
        .iter()
        .zip(kinds)
        .map(|(part, kind)| (*part - frac(part.n / part.d, 1), kind.count))
        .collect();
    while left > 0 {
        let waiting = fractions
            .iter()
            .enumerate()
            .filter(|(_, (_, count))| *count > 0);
        let most = waiting
            .clone()
            .map(|(_, (fraction, _))| *fraction)
            .max()
            .unwrap();
        let (at, _) = waiting
            .clone()
            .find(|(_, (fraction, _))| *fraction == most)
            .unwrap();
        fractions[at].1 -= 1;
        picks[at] += 1;
        left -= 1;
    }
    beyond(kinds, &picks) == ZERO
}

/// Compares the engine's result with the whole buckets of `certain`, and copies the distribution of the remaining ones,
/// so that both are equal.
pub(crate) fn rest(
    certain: &BTreeMap<Id, u32>,
    given: &mut BTreeMap<Id, u32>,
) -> Result<(), String> {
    let sum: u32 = given.values().sum();
    let alike = given.values().all(|weight| *weight <= 1);
    if alike || sum == 0 {
        // In lowest terms, for any number of buckets.
        let whole = certain.values().copied().filter(|weight| *weight > 0);
        let (least, most) = (whole.clone().min(), whole.max());
        return if least == most || sum == 0 {
            for (id, weight) in given.iter_mut() {
                *weight *= certain.get(id).copied().unwrap_or(1).max(1);
            }
            Ok(())
        } else {
            Err("all alike although shares differ".to_owned())
        };
    }
    if 256 % sum != 0 {
        return Err(format!("{sum} weights do not deal out 256 buckets"));
    }
    for (id, weight) in given.iter_mut() {
        *weight *= 256 / sum;
        let own = certain.get(id).copied().unwrap_or(0);
        if *weight == own + 1 && own > 0 {
            *weight = own;
        }
    }
    Ok(())
}

fn endpoints(kinds: &[Kind]) -> i128 {
    kinds.iter().map(|kind| kind.count).sum()
}

/// The exact number of buckets; `None` without a fraction.
fn parts(kinds: &[Kind]) -> Option<Vec<Frac>> {
    let first = kinds.first()?;
    if kinds.iter().all(|kind| kind.share == first.share) || endpoints(kinds) > BUCKETS {
        return None;
    }
    let mut one_only: Vec<bool> = vec![false; kinds.len()];
    loop {
        let mut room = BUCKETS;
        let mut sum = ZERO;
        for (kind, one_only) in kinds.iter().zip(&one_only) {
            if *one_only {
                room -= kind.count;
            } else {
                sum = sum + kind.share * frac(kind.count, 1);
            }
        }
        let part = |(kind, one_only): (&Kind, &bool)| {
            if *one_only {
                ONE
            } else {
                kind.share * frac(room, 1) / sum
            }
        };
        let parts: Vec<Frac> = kinds.iter().zip(&one_only).map(part).collect();
        if parts.iter().all(|part| *part >= ONE) {
            return Some(parts);
        }
        for (one_only, part) in one_only.iter_mut().zip(&parts) {
            *one_only = *one_only || *part < ONE;
        }
    }
}
