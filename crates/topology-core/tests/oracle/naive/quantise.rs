//! S10: integers in the proportions of the shares, or near enough.

use std::collections::BTreeMap;

use super::Id;
use topology_core::scheduler::Scheduler;

use crate::frac::{Frac, ZERO, frac, gcd, times};

pub(crate) mod buckets;

/// Whether the shares have small weights: exact ones, or within the tolerance after a short search. For `mh` and `sh`,
/// whose weights are always small: whether they are within the tolerance.
pub(crate) fn are_small(
    scheduler: Scheduler,
    share: &BTreeMap<Id, Frac>,
    tier: &BTreeMap<Id, usize>,
) -> bool {
    let kinds = kinds(share, tier);
    match scheduler {
        Scheduler::Mh => return (1..=63).any(|largest| is_fair(&kinds, &rounded(&kinds, largest))),
        Scheduler::Sh => return buckets::are_fair(&kinds),
        _ => {}
    }
    exact(&kinds).into_iter().all(|weight| weight <= 256) || search(&kinds, 1..=1024).is_some()
}

/// The weights of `share`, which add up to 1; for `sh` the smaller of the two weights of an endpoint.
pub(crate) fn weights(
    scheduler: Scheduler,
    share: &BTreeMap<Id, Frac>,
    tier: &BTreeMap<Id, usize>,
) -> BTreeMap<Id, u32> {
    if share.is_empty() {
        return BTreeMap::new();
    }
    let kinds = kinds(share, tier);
    let found = match scheduler {
        Scheduler::Mh => nearest_of_six_bits(&kinds),
        Scheduler::Sh => buckets::whole(&kinds),
        _ => find(&kinds),
    };
    let weight_of = |id: &Id| {
        let at = kinds
            .iter()
            .position(|kind| kind.tier == tier[id] && kind.share == share[id]);
        u32::try_from(found[at.unwrap()]).unwrap()
    };
    share.keys().map(|id| (*id, weight_of(id))).collect()
}

/// The first weights up to 1, 2, 3 ... 63 that are within the tolerance, otherwise the first that are nearest to it.
fn nearest_of_six_bits(kinds: &[Kind]) -> Vec<i128> {
    let all = || (1..=63).map(|largest| rounded(kinds, largest));
    let least = all().map(|weights| unfairness(kinds, &weights)).min();
    let found = all().find(|weights| Some(unfairness(kinds, weights)) == least);
    lowest_terms(found.unwrap())
}

#[derive(Debug)]
struct Kind {
    tier: usize,
    share: Frac,
    count: i128,
}

/// Groups endpoints of the same level and share. Smaller shares come first.
fn kinds(share: &BTreeMap<Id, Frac>, tier: &BTreeMap<Id, usize>) -> Vec<Kind> {
    let mut kinds: BTreeMap<(usize, Frac), i128> = BTreeMap::new();
    for (id, share) in share {
        *kinds.entry((tier[id], *share)).or_default() += 1;
    }
    let kinds = kinds.into_iter();
    kinds
        .map(|((tier, share), count)| Kind { tier, share, count })
        .collect()
}

fn find(kinds: &[Kind]) -> Vec<i128> {
    let exact = exact(kinds);
    let largest = exact.iter().max().copied().unwrap();
    if largest <= 256 {
        return exact;
    }
    if let Some(found) = search(kinds, 1..=1024) {
        return found;
    }
    if largest <= 65_535 {
        return exact;
    }
    search(kinds, 1025..=65_535).unwrap_or_else(|| lowest_terms(rounded(kinds, 65_535)))
}

fn exact(kinds: &[Kind]) -> Vec<i128> {
    let mut common = 1;
    for kind in kinds {
        common = times(common, kind.share.d / gcd(common, kind.share.d));
    }
    lowest_terms(
        kinds
            .iter()
            .map(|kind| times(kind.share.n, common / kind.share.d))
            .collect(),
    )
}

fn lowest_terms(weights: Vec<i128>) -> Vec<i128> {
    let common = weights
        .iter()
        .fold(0, |common, weight| gcd(common, *weight))
        .max(1);
    weights.into_iter().map(|weight| weight / common).collect()
}

fn rounded(kinds: &[Kind], largest: i128) -> Vec<i128> {
    let most = kinds.iter().map(|kind| kind.share).max().unwrap();
    kinds
        .iter()
        .map(|kind| {
            let ratio = kind.share / most;
            ((times(2 * largest, ratio.n) + ratio.d) / times(2, ratio.d)).max(1)
        })
        .collect()
}

fn search(kinds: &[Kind], mut range: std::ops::RangeInclusive<i128>) -> Option<Vec<i128>> {
    let found = range.find(|largest| is_fair(kinds, &rounded(kinds, *largest)))?;
    Some(lowest_terms(rounded(kinds, found)))
}

/// The tolerance applies to every level, and to every kind of endpoints in a level.
fn is_fair(kinds: &[Kind], weights: &[i128]) -> bool {
    unfairness(kinds, weights) == ZERO
}

/// How far the worst level or kind is beyond the tolerance.
fn unfairness(kinds: &[Kind], weights: &[i128]) -> Frac {
    let picks = kinds.iter().zip(weights);
    beyond(
        kinds,
        &picks
            .map(|(kind, weight)| kind.count * weight)
            .collect::<Vec<_>>(),
    )
}

/// The same for so many picks of each kind.
fn beyond(kinds: &[Kind], picks: &[i128]) -> Frac {
    let mut cycle = 0;
    let mut by_tier: BTreeMap<usize, (Frac, i128)> = BTreeMap::new();
    for (kind, picks) in kinds.iter().zip(picks) {
        let tier = by_tier.entry(kind.tier).or_insert((frac(0, 1), 0));
        *tier = (tier.0 + kind.share * frac(kind.count, 1), tier.1 + picks);
        cycle += picks;
    }
    let of_kinds = kinds
        .iter()
        .zip(picks)
        .map(|(kind, picks)| (kind.share * frac(kind.count, 1), *picks));
    let parts = by_tier.into_values().chain(of_kinds);
    let beyond = parts.map(|(wanted, picks)| too_far(wanted, frac(picks, cycle)));
    beyond.max().unwrap_or(ZERO)
}

/// How far it is beyond the tolerance.
fn too_far(wanted: Frac, achieved: Frac) -> Frac {
    let off = if achieved > wanted {
        achieved - wanted
    } else {
        wanted - achieved
    };
    let most = frac(1, 200).min(frac(1, 1000).max(wanted * frac(1, 20)));
    if off > most { off - most } else { ZERO }
}

#[test]
fn the_weights_of_q14() {
    let id = |number: u8| (std::net::IpAddr::from([10, 0, 0, number]), 80);
    let counts = [(2_u8, 60_i128), (3, 25), (7, 10), (11, 5)];
    let (mut share, mut tier) = (BTreeMap::new(), BTreeMap::new());
    for (at, (count, percent)) in counts.into_iter().enumerate() {
        for number in 0..count {
            let id = id(number + u8::try_from(at).unwrap() * 20);
            share.insert(id, frac(percent, 100 * i128::from(count)));
            tier.insert(id, at);
        }
    }
    let found: std::collections::BTreeSet<u32> = weights(Scheduler::Wrr, &share, &tier)
        .into_values()
        .collect();
    assert_eq!(found, [64, 18, 3, 1].into());
}

#[test]
fn capacities_of_1_and_1000_are_not_alike() {
    let id = |number: u8| (std::net::IpAddr::from([10, 0, 0, number]), 80);
    let share = BTreeMap::from([(id(1), frac(1, 1001)), (id(2), frac(1000, 1001))]);
    let tier = BTreeMap::from([(id(1), 0), (id(2), 0)]);
    let found: Vec<u32> = weights(Scheduler::Wrr, &share, &tier)
        .into_values()
        .collect();
    assert_eq!(found, [1, 500]);
}
