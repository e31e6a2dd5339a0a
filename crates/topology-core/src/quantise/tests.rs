//! Weights: capacity classes, limits, tolerance, and a model of the kernel's scheduler.

use proptest::prelude::*;

use super::*;

fn class(level: usize, count: u32, share: Ratio) -> Class {
    Class {
        level,
        share,
        count,
    }
}

/// Weights of levels given as (weight, endpoints).
fn levels_of(levels: &[(u64, u32)]) -> Vec<Class> {
    let sum: u64 = levels.iter().map(|(weight, _)| weight).sum();
    let levels = levels.iter().enumerate();
    levels
        .map(|(level, (weight, count))| {
            class(level, *count, Ratio::new(*weight, sum * u64::from(*count)))
        })
        .collect()
}

/// `wrr` as in the kernel (`ip_vs_wrr_schedule`): serves every real server with at least the current weight, lowers
/// that by the common divisor, and starts again.
fn wrr(weights: &[u32], picks: usize) -> Vec<usize> {
    let largest = weights.iter().copied().max().unwrap_or(0);
    let step = weights
        .iter()
        .fold(0, |common, weight| gcd(common, u128::from(*weight)));
    let step = u32::try_from(step).unwrap();
    let mut order = Vec::new();
    let mut level = largest;
    while order.len() < picks {
        let reached = weights
            .iter()
            .enumerate()
            .filter(|(_, weight)| **weight >= level);
        order.extend(reached.map(|(index, _)| index));
        level = if level > step { level - step } else { largest };
    }
    order.truncate(picks);
    order
}

#[test]
fn q39_capacity_classes_divide_the_share_of_their_tier() {
    let near = |capacity: u64| Ratio::new(70 * capacity, 100 * 3);
    let classes = [
        class(0, 1, near(2)),
        class(0, 1, near(1)),
        class(1, 3, Ratio::new(10, 100)),
    ];
    let quantised = quantise(&classes);
    assert_eq!(quantised.weights, [14, 7, 3]);
    assert_eq!(
        (quantised.method, quantised.cycle),
        (QuantiseMethod::Exact, 30)
    );
    assert_eq!(
        achieved(&classes, &quantised.weights),
        [Ratio::new(7, 10), Ratio::new(3, 10)]
    );
}

#[test]
fn q44_wrr_serves_the_heavy_first_and_all_exactly() {
    assert_eq!(wrr(&[4, 3, 2], 9), [0, 0, 1, 0, 1, 2, 0, 1, 2]);
    assert_eq!(wrr(&[5, 1], 6), [0, 0, 0, 0, 0, 1]);
    for weights in [[96, 6, 1], [14, 7, 3], [776, 1, 1]] {
        let cycle = usize::try_from(weights.iter().sum::<u32>()).unwrap();
        let order = wrr(&weights, cycle);
        for (index, weight) in weights.iter().enumerate() {
            let count = order.iter().filter(|pick| **pick == index).count();
            assert_eq!(count, usize::try_from(*weight).unwrap());
        }
    }
    let run = wrr(&[96, 6, 6, 6, 1, 1, 1, 1, 1, 1], 120);
    let longest = run.chunk_by(|a, b| a == b).map(<[_]>::len).max();
    assert_eq!(longest, Some(91), "the run that 8.6 warns of");
}

#[test]
fn shares_too_far_apart_are_clamped_at_the_largest_weight() {
    let quantised = quantise(&levels_of(&[(10_000, 1), (1, 200)]));
    assert_eq!(
        (quantised.method, quantised.weights),
        (QuantiseMethod::Clamped, vec![65_535, 1])
    );
}

#[test]
fn a_search_may_need_more_than_1024() {
    let classes = levels_of(&[(9_973, 3), (997, 701), (13, 11)]);
    let quantised = quantise(&classes);
    assert_eq!(
        quantised.method,
        QuantiseMethod::WideSearch,
        "{:?}",
        quantised.weights
    );
    assert!(quantised.weights[0] > 1_024);
}

#[test]
fn without_classes_there_are_no_weights() {
    let nothing = quantise(&[]);
    assert_eq!((nothing.weights.len(), nothing.cycle), (0, 0));
}

/// The table in the module's documentation, with exact fractions and without optimisation.
fn naive(classes: &[Class], largest: u32) -> Vec<u32> {
    let top = classes.iter().map(|class| class.share).max().unwrap();
    let round = |class: &Class| {
        let scaled = class.share / top * Ratio::new(u64::from(largest), 1) + Ratio::new(1, 2);
        u32::try_from(scaled.numerator() / scaled.denominator())
            .unwrap()
            .max(1)
    };
    let weights: Vec<u32> = classes.iter().map(round).collect();
    let common = weights
        .iter()
        .fold(0, |common, weight| gcd(common, u128::from(*weight)));
    let common = u32::try_from(common).unwrap();
    weights.iter().map(|weight| weight / common).collect()
}

fn near_enough(classes: &[Class], weights: &[u32]) -> bool {
    let achieved = achieved(classes, weights);
    let desired = |level| {
        let of_level = classes.iter().filter(|class| class.level == level);
        of_level
            .map(|class| class.share * Ratio::new(class.count.into(), 1))
            .sum::<Ratio>()
    };
    let levels_near = achieved
        .iter()
        .enumerate()
        .all(|(level, achieved)| achieved.distance(desired(level)) <= tolerance(desired(level)));
    levels_near && kinds_near_enough(classes, weights)
}

/// Whether all endpoints of one level and share together get their share within the tolerance.
fn kinds_near_enough(classes: &[Class], weights: &[u32]) -> bool {
    let picks = |class: &Class, weight: &u32| u64::from(class.count) * u64::from(*weight);
    let both = || classes.iter().zip(weights);
    let cycle: u64 = both().map(|(class, weight)| picks(class, weight)).sum();
    classes.iter().all(|kind| {
        let alike =
            |(class, _): &(&Class, &u32)| (class.level, class.share) == (kind.level, kind.share);
        let desired: Ratio = both()
            .filter(alike)
            .map(|(class, _)| class.share * Ratio::new(class.count.into(), 1))
            .sum();
        let got = both()
            .filter(alike)
            .map(|(class, weight)| picks(class, weight));
        Ratio::new(got.sum(), cycle).distance(desired) <= tolerance(desired)
    })
}

/// Endpoints of one level with these capacities, one each.
fn capacities(of: &[u64]) -> Vec<Class> {
    let sum = of.iter().sum();
    of.iter()
        .map(|own| class(0, 1, Ratio::new(*own, sum)))
        .collect()
}

#[test]
fn capacities_far_apart_count_within_a_tier() {
    for (of, expected) in [
        (&[1, 256][..], &[1, 256][..]),
        (&[1, 257], &[1, 205]),
        (&[1, 1000], &[1, 500]),
        (&[100, 301], &[1, 3]),
        (&[16, 32, 48, 257], &[1, 2, 3, 16]),
    ] {
        let quantised = quantise(&capacities(of));
        assert_eq!(quantised.weights, expected, "{of:?} {:?}", quantised.method);
    }
}

/// Levels with equal endpoints, or with two capacities each.
fn any_levels() -> impl Strategy<Value = Vec<Class>> {
    let level = (1..=10_000_u64, 1..300_u32);
    let alike = proptest::collection::vec(level, 1..6).prop_map(|levels| levels_of(&levels));
    let level = (
        1..=10_000_u64,
        (1..=1_000_u64, 1..9_u32),
        (1..=1_000_u64, 1..9_u32),
    );
    let mixed = proptest::collection::vec(level, 1..4).prop_map(|levels| {
        let sum: u64 = levels.iter().map(|(weight, ..)| weight).sum();
        let levels = levels.into_iter().enumerate();
        let classes = levels.flat_map(|(level, (weight, (one, ones), (other, others)))| {
            let capacity = one * u64::from(ones) + other * u64::from(others);
            [(one, ones), (other, others)]
                .map(|(own, count)| class(level, count, Ratio::new(weight * own, sum * capacity)))
        });
        classes.collect()
    });
    prop_oneof![alike, mixed]
}

proptest! {
    #[test]
    fn i3_i4_weights_are_near_enough_small_and_in_lowest_terms(classes in any_levels()) {
        let quantised = quantise(&classes);
        let common = quantised.weights.iter().fold(0, |common, weight| gcd(common, u128::from(*weight)));
        prop_assert_eq!(common, 1);
        prop_assert!(quantised.weights.iter().all(|weight| (1..=MAX_WEIGHT).contains(weight)));
        let is_near = near_enough(&classes, &quantised.weights);
        prop_assert_eq!(is_near, quantised.method != QuantiseMethod::Clamped);
        let picks: u64 = classes.iter().zip(&quantised.weights).map(|(class, weight)| u64::from(class.count) * u64::from(*weight)).sum();
        prop_assert_eq!(picks, quantised.cycle);
    }

    #[test]
    fn the_search_walks_by_the_formula(classes in any_levels()) {
        let mut search = Search::new(&classes);
        let found = search.up_to(SEARCH_LIMIT);
        let expected = (1..=SEARCH_LIMIT)
            .map(|largest| naive(&classes, largest))
            .find(|weights| near_enough(&classes, weights));
        prop_assert_eq!(found, expected);
    }

    #[test]
    fn i9_scaling_all_weights_changes_nothing(levels in proptest::collection::vec((1..=100_u64, 1..50_u32), 1..5), factor in 2..100_u64) {
        let scaled: Vec<(u64, u32)> = levels.iter().map(|(weight, count)| (weight * factor, *count)).collect();
        prop_assert_eq!(quantise(&levels_of(&levels)), quantise(&levels_of(&scaled)));
    }
}
