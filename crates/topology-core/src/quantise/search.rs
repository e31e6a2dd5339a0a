//! The search for the smallest rounded weights that are near enough, in machine integers.
//!
//! With the largest weight m, a class whose share is p/q of the largest gets `max(1, round(m p / q))`, halves
//! rounded up. From one m to the next a weight grows by one or not at all, so the walk from 1 to 65,535 only adds and
//! compares, as a line is drawn on a grid.

use super::{Class, tiers, tolerance};
use crate::ratio::{Ratio, gcd};

/// A walk over the largest weight.
pub(super) struct Search {
    /// The largest weight so far.
    largest: u32,
    lines: Vec<Line>,
    bounds: Vec<Bounds>,
    /// Picks in one cycle.
    total: u64,
}

/// The weight of one class as a line over the largest weight.
struct Line {
    tier: usize,
    count: u64,
    weight: u32,
    /// What is added at each step: 2p.
    slope: u64,
    /// What one more weight costs: 2q.
    unit: u64,
    /// What has been added and not spent; begins with q, so that halves are rounded up.
    rest: u64,
}

/// The range of picks of one tier that is near enough, as fractions of the total.
struct Bounds {
    picks: u64,
    least: (u64, u64),
    most: (u64, u64),
}

impl Search {
    /// A walk that has not begun: every weight is 1.
    pub(super) fn new(classes: &[Class]) -> Self {
        let largest_share = classes.iter().map(|class| class.share).max();
        let lines: Vec<Line> = classes
            .iter()
            .map(|class| Line::new(class, largest_share.unwrap_or(Ratio::ONE)))
            .collect();
        let mut wanted = vec![Ratio::ZERO; tiers(classes)];
        for class in classes {
            if let Some(wanted) = wanted.get_mut(class.tier) {
                *wanted = *wanted + class.share * Ratio::new(class.count.into(), 1);
            }
        }
        let mut search = Self {
            largest: 0,
            bounds: wanted.into_iter().map(Bounds::new).collect(),
            total: 0,
            lines,
        };
        for line in &search.lines {
            search.total += line.count;
            if let Some(bounds) = search.bounds.get_mut(line.tier) {
                bounds.picks += line.count;
            }
        }
        search
    }

    /// The first weights from here to `limit` that are near enough; the walk stays there, or at the limit.
    pub(super) fn up_to(&mut self, limit: u32) -> Option<Vec<u32>> {
        while self.largest < limit {
            self.step();
            if self.bounds.iter().all(|bounds| bounds.hold(self.total)) {
                return Some(self.weights());
            }
        }
        None
    }

    /// The weights here, in lowest terms.
    pub(super) fn weights(&self) -> Vec<u32> {
        let common = |common, line: &Line| gcd(common, u128::from(line.weight.max(1)));
        let common = u32::try_from(self.lines.iter().fold(0, common))
            .unwrap_or(1)
            .max(1);
        self.lines
            .iter()
            .map(|line| line.weight.max(1) / common)
            .collect()
    }

    fn step(&mut self) {
        self.largest += 1;
        for line in &mut self.lines {
            line.rest += line.slope;
            if line.rest < line.unit {
                continue;
            }
            line.rest -= line.unit;
            line.weight += 1;
            // Below 1 every weight counts as 1 already.
            if line.weight > 1 {
                self.total += line.count;
                if let Some(bounds) = self.bounds.get_mut(line.tier) {
                    bounds.picks += line.count;
                }
            }
        }
    }
}

impl Line {
    fn new(class: &Class, largest_share: Ratio) -> Self {
        // Two bits are left for 2q and for the sum of rest and slope.
        let (p, q) = words(class.share / largest_share, 61);
        Self {
            tier: class.tier,
            count: class.count.into(),
            weight: 0,
            slope: 2 * p,
            unit: 2 * q,
            rest: q,
        }
    }
}

impl Bounds {
    fn new(wanted: Ratio) -> Self {
        let tolerance = tolerance(wanted);
        Self {
            picks: 0,
            least: words(wanted - tolerance, 64),
            most: words(wanted + tolerance, 64),
        }
    }

    /// Whether the picks are near enough to the wanted share of `total`.
    fn hold(&self, total: u64) -> bool {
        let (picks, total) = (u128::from(self.picks), u128::from(total));
        let at_least = u128::from(self.least.0) * total <= picks * u128::from(self.least.1);
        at_least && picks * u128::from(self.most.1) <= u128::from(self.most.0) * total
    }
}

/// Numerator and denominator in so many bits; lower bits of both are given up together if there are more.
fn words(ratio: Ratio, bits: u32) -> (u64, u64) {
    let used = 128 - (ratio.numerator() | ratio.denominator()).leading_zeros();
    let extra = used.saturating_sub(bits);
    let word = |number: u128| u64::try_from(number >> extra).unwrap_or(u64::MAX);
    (word(ratio.numerator()), word(ratio.denominator()).max(1))
}
