//! The search for the smallest rounded weights that are near enough, in machine integers.
//!
//! With the largest weight m, a class whose share is p/q of the largest gets `max(1, round(m p / q))`, halves
//! rounded up: it weighs k from `m = ceil(q (2k - 1) / 2p)` on. These moments lie q/p apart, so each follows from the one
//! before by an addition, and the walk from 1 to 65,535 only looks whose moment has come.

use super::{Class, tiers, tolerance};
use crate::ratio::{Ratio, gcd};

/// Lines that are looked at together.
const CHUNK: usize = 8;

/// A walk over the largest weight.
pub(super) struct Search {
    /// The largest weight so far.
    largest: u32,
    /// When each line weighs one more; apart from the lines, since every step looks at all of them.
    due: Vec<u32>,
    lines: Vec<Line>,
    bounds: Vec<Bounds>,
    /// The tier that was not near enough last; it seldom is at once.
    suspect: usize,
    /// Picks in one cycle.
    total: u64,
}

/// The weight of one class as a line over the largest weight.
struct Line {
    tier: usize,
    count: u64,
    weight: u32,
    /// Whole steps from one moment to the next, and what remains: `q / p` in parts of 2p.
    apart: u64,
    remainder: u64,
    /// What has remained so far, less than 2p.
    rest: u64,
    /// 2p.
    unit: u64,
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
        let largest_share = largest_share.unwrap_or(Ratio::ONE);
        let (lines, due): (Vec<Line>, Vec<u32>) = classes
            .iter()
            .map(|class| Line::new(class, largest_share))
            .unzip();
        let mut wanted = vec![Ratio::ZERO; tiers(classes)];
        for class in classes {
            if let Some(wanted) = wanted.get_mut(class.tier) {
                *wanted = *wanted + class.share * Ratio::new(class.count.into(), 1);
            }
        }
        let mut search = Self {
            largest: 0,
            bounds: wanted.into_iter().map(Bounds::new).collect(),
            suspect: 0,
            total: 0,
            due,
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
            if self.is_near() {
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

    /// Whether every tier is near enough.
    fn is_near(&mut self) -> bool {
        let fails = |bounds: &Bounds| !bounds.hold(self.total);
        if self.bounds.get(self.suspect).is_some_and(fails) {
            return false;
        }
        match self.bounds.iter().position(fails) {
            Some(suspect) => {
                self.suspect = suspect;
                false
            }
            None => true,
        }
    }

    fn step(&mut self) {
        self.largest += 1;
        for (due, lines) in self.due.chunks_mut(CHUNK).zip(self.lines.chunks_mut(CHUNK)) {
            // Counted and not searched, so that they are compared at once.
            let now: u32 = due.iter().map(|due| u32::from(*due == self.largest)).sum();
            if now == 0 {
                continue;
            }
            for (due, line) in due.iter_mut().zip(lines) {
                if *due != self.largest {
                    continue;
                }
                *due = line.grow(*due);
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
}

impl Line {
    /// The line, and when it weighs 1.
    fn new(class: &Class, largest_share: Ratio) -> (Self, u32) {
        // Two bits are left for 2q and for the sums of rest and remainder.
        let (p, q) = words(class.share / largest_share, 61);
        let unit = 2 * p.max(1);
        let first = q + unit - 1;
        let line = Self {
            tier: class.tier,
            count: class.count.into(),
            weight: 0,
            apart: 2 * q / unit,
            remainder: 2 * q % unit,
            rest: first % unit,
            unit,
        };
        (line, u32::try_from(first / unit).unwrap_or(u32::MAX))
    }

    /// Weighs one more from `now` on; when it will again.
    fn grow(&mut self, now: u32) -> u32 {
        self.weight += 1;
        self.rest += self.remainder;
        let carry = u64::from(self.rest >= self.unit);
        self.rest -= carry * self.unit;
        let next = u64::from(now) + self.apart + carry;
        u32::try_from(next).unwrap_or(u32::MAX)
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
