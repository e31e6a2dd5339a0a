//! Skips do not change the result of the search.

use proptest::prelude::*;

use super::*;
use crate::quantise::MAX_WEIGHT;

/// Levels as (weight, endpoints), from similar to very different weights.
fn classes() -> impl Strategy<Value = Vec<Class>> {
    let weight = prop_oneof![1..=10_000_u64, 1..=20_u64];
    let count = prop_oneof![1..=8_u32, 1..=3_000_u32];
    proptest::collection::vec((weight, count), 1..16).prop_map(|levels| {
        let sum: u64 = levels.iter().map(|(weight, _)| weight).sum();
        let class = |(level, (weight, count)): (usize, (u64, u32))| Class {
            level: level / 2,
            share: Ratio::new(weight, sum * u64::from(count)),
            count,
        };
        levels.into_iter().enumerate().map(class).collect()
    })
}

proptest! {
    #[test]
    fn a_walk_with_leaps_ends_where_one_step_by_step_does(classes in classes()) {
        let mut leaping = Search::new(&classes);
        let mut walking = Search::new(&classes);
        walking.look_ahead = u32::MAX;
        for limit in [1_024, MAX_WEIGHT] {
            prop_assert_eq!(leaping.up_to(limit), walking.up_to(limit));
            prop_assert_eq!(leaping.largest, walking.largest);
            prop_assert_eq!(leaping.weights(), walking.weights());
            prop_assert_eq!(&leaping.due, &walking.due);
        }
    }
}
