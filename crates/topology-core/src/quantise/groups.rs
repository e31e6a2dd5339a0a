//! The groups of endpoints that the tolerance applies to: each level, and inside a level the endpoints with the same
//! share.
//!
//! A level with equal endpoints needs only one check. In a level with several capacities each kind is checked.
//! Otherwise, for capacities 1 and 257 the sum of the level would be within the tolerance with weights 1 and 1.

use std::collections::BTreeMap;

use super::class::{Class, levels};
use crate::ratio::Ratio;

/// How far the achieved share of a group may differ from the `desired` one: at most 0.5 points, and at most the larger
/// of 0.1 points and 5 % of the share.
pub fn tolerance(desired: Ratio) -> Ratio {
    let relative = (desired * Ratio::new(5, 100)).max(Ratio::new(1, 1_000));
    relative.min(Ratio::new(5, 1_000))
}

/// The groups.
pub(super) struct ShareGroups {
    /// The desired share of each group: first the levels, then the kinds.
    pub(super) desired: Vec<Ratio>,
    /// The kind of each class, as an index into `desired`; `None` if its level has no other kind.
    pub(super) kinds: Vec<Option<usize>>,
}

impl ShareGroups {
    pub(super) fn of(classes: &[Class]) -> Self {
        let levels = levels(classes);
        let mut groups = Self {
            desired: vec![Ratio::ZERO; levels],
            kinds: vec![None; classes.len()],
        };
        let mixed = mixed(classes, levels);
        let mut found: BTreeMap<(usize, Ratio), usize> = BTreeMap::new();
        for (at, class) in classes.iter().enumerate() {
            groups.want(class.level, class);
            if mixed.get(class.level) != Some(&true) {
                continue;
            }
            let next = groups.desired.len();
            let place = *found.entry((class.level, class.share)).or_insert(next);
            if place == next {
                groups.desired.push(Ratio::ZERO);
            }
            groups.want(place, class);
            if let Some(kind) = groups.kinds.get_mut(at) {
                *kind = Some(place);
            }
        }
        groups
    }

    /// How far the worst group is beyond its tolerance with so many `picks` for each class; 0 if all are within it.
    pub(super) fn excess(&self, classes: &[Class], picks: &[u64]) -> Ratio {
        let mut sums = vec![0_u64; self.desired.len()];
        for ((class, kind), picks) in classes.iter().zip(&self.kinds).zip(picks) {
            for at in [Some(class.level), *kind].into_iter().flatten() {
                if let Some(sum) = sums.get_mut(at) {
                    *sum += picks;
                }
            }
        }
        let all = picks.iter().sum();
        let beyond = self.desired.iter().zip(sums).map(|(desired, sum)| {
            let off = Ratio::new(sum, all).distance(*desired);
            let most = tolerance(*desired);
            if off > most { off - most } else { Ratio::ZERO }
        });
        beyond.max().unwrap_or(Ratio::ZERO)
    }

    fn want(&mut self, at: usize, class: &Class) {
        if let Some(desired) = self.desired.get_mut(at) {
            *desired = *desired + class.share * Ratio::new(class.count.into(), 1);
        }
    }
}

/// Whether each level has classes with different shares.
fn mixed(classes: &[Class], levels: usize) -> Vec<bool> {
    let mut first: Vec<Option<Ratio>> = vec![None; levels];
    let mut mixed = vec![false; levels];
    for class in classes {
        let first = first.get_mut(class.level);
        if let Some((first, mixed)) = first.zip(mixed.get_mut(class.level)) {
            *mixed |= *first.get_or_insert(class.share) != class.share;
        }
    }
    mixed
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn class(level: usize, share: u64) -> Class {
        Class {
            level,
            share: Ratio::new(share, 1_000),
            count: 1,
        }
    }

    proptest! {
        #[test]
        fn a_kind_is_the_classes_of_one_share_in_a_level_with_several(
            drawn in prop::collection::vec((0_usize..4, 1_u64..4), 0..12),
        ) {
            let classes: Vec<Class> = drawn.iter().map(|(level, share)| class(*level, *share)).collect();
            let groups = ShareGroups::of(&classes);
            let mut kinds: Vec<(usize, u64)> = Vec::new();
            for (one, kind) in drawn.iter().zip(&groups.kinds) {
                let others = drawn.iter().filter(|other| other.0 == one.0);
                if others.clone().all(|other| other == one) {
                    prop_assert_eq!(*kind, None);
                    continue;
                }
                if !kinds.contains(one) {
                    kinds.push(*one);
                }
                let place = kinds.iter().position(|known| known == one).unwrap();
                let place = levels(&classes) + place;
                prop_assert_eq!(*kind, Some(place));
                let equal = others.filter(|other| *other == one).count();
                let desired = Ratio::new(one.1 * u64::try_from(equal).unwrap(), 1_000);
                prop_assert_eq!(groups.desired[place], desired);
            }
            prop_assert_eq!(groups.desired.len(), levels(&classes) + kinds.len());
        }
    }

    /// Comparing every class with every other one would take minutes.
    #[test]
    fn d13_a_hundred_thousand_classes_are_grouped_without_comparing_all_pairs() {
        let alike: Vec<Class> = (0..200_000).map(|_| class(0, 1)).collect();
        let groups = ShareGroups::of(&alike);
        assert_eq!(groups.desired, [Ratio::new(200, 1)]);
        let different: Vec<Class> = (1..=200_000).map(|share| class(0, share)).collect();
        let groups = ShareGroups::of(&different);
        assert_eq!(groups.desired.len(), 200_001);
    }
}
