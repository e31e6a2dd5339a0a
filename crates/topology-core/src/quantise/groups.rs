//! What the tolerance is judged for: every tier, and inside a tier the endpoints that get the same share each.
//!
//! A tier of endpoints that are all alike needs no second look. In one of several capacities each kind has to be near
//! enough: with the tier's sum alone, capacities 1 and 257 would be near enough with weights 1 and 1.

use super::{Class, tiers, tolerance};
use crate::ratio::Ratio;

/// What is judged together.
pub(super) struct Groups {
    /// The wanted share of each: those of the tiers, then those of the kinds.
    pub(super) wanted: Vec<Ratio>,
    /// The kind of each class, as an index into `wanted`; none where its tier holds no other kind.
    pub(super) kinds: Vec<Option<usize>>,
}

impl Groups {
    pub(super) fn of(classes: &[Class]) -> Self {
        let tiers = tiers(classes);
        let mut groups = Self {
            wanted: vec![Ratio::ZERO; tiers],
            kinds: vec![None; classes.len()],
        };
        let mut found: Vec<(usize, Ratio)> = Vec::new();
        for (at, class) in classes.iter().enumerate() {
            groups.want(class.tier, class);
            if classes.iter().all(|other| !differs(class, other)) {
                continue;
            }
            let kind = (class.tier, class.share);
            let place = found.iter().position(|known| *known == kind);
            let place = tiers + place.unwrap_or(found.len());
            if place == groups.wanted.len() {
                found.push(kind);
                groups.wanted.push(Ratio::ZERO);
            }
            groups.want(place, class);
            if let Some(kind) = groups.kinds.get_mut(at) {
                *kind = Some(place);
            }
        }
        groups
    }

    /// How far the worst is beyond its tolerance if the endpoints of each class have so many `picks` together; 0 if
    /// everything is near enough.
    pub(super) fn excess(&self, classes: &[Class], picks: &[u64]) -> Ratio {
        let mut sums = vec![0_u64; self.wanted.len()];
        for ((class, kind), picks) in classes.iter().zip(&self.kinds).zip(picks) {
            for at in [Some(class.tier), *kind].into_iter().flatten() {
                if let Some(sum) = sums.get_mut(at) {
                    *sum += picks;
                }
            }
        }
        let all = picks.iter().sum();
        let beyond = self.wanted.iter().zip(sums).map(|(wanted, sum)| {
            let off = Ratio::new(sum, all).distance(*wanted);
            let most = tolerance(*wanted);
            if off > most { off - most } else { Ratio::ZERO }
        });
        beyond.max().unwrap_or(Ratio::ZERO)
    }

    fn want(&mut self, at: usize, class: &Class) {
        if let Some(wanted) = self.wanted.get_mut(at) {
            *wanted = *wanted + class.share * Ratio::new(class.count.into(), 1);
        }
    }
}

/// Whether `other` is of the same tier and another kind.
fn differs(class: &Class, other: &Class) -> bool {
    class.tier == other.tier && class.share != other.share
}
