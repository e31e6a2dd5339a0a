//! The groups of endpoints that the tolerance applies to: each level, and inside a level the endpoints with the same
//! share.
//!
//! A level with equal endpoints needs only one check. In a level with several capacities each kind is checked.
//! Otherwise, for capacities 1 and 257 the sum of the level would be within the tolerance with weights 1 and 1.

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
        let mut found: Vec<(usize, Ratio)> = Vec::new();
        for (at, class) in classes.iter().enumerate() {
            groups.want(class.level, class);
            if classes.iter().all(|other| !differs(class, other)) {
                continue;
            }
            let kind = (class.level, class.share);
            let place = found.iter().position(|known| *known == kind);
            let place = levels + place.unwrap_or(found.len());
            if place == groups.desired.len() {
                found.push(kind);
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

/// Whether `other` is of the same level and another kind.
fn differs(class: &Class, other: &Class) -> bool {
    class.level == other.level && class.share != other.share
}
