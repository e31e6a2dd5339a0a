//! The weight of one class as a line over the largest weight.
//!
//! With the largest weight m, a class whose share is p/q of the largest gets `max(1, round(m p / q))`, halves
//! rounded up: it weighs k from `m = ceil(q (2k - 1) / 2p)` on. These moments lie q/p apart, so each follows from the one
//! before by an addition.

use super::words::words;
use crate::quantise::class::Class;
use crate::ratio::Ratio;

/// Slopes are in parts of 2 to this.
pub(super) const SLOPE_BITS: u32 = 32;

pub(super) struct ClassLine {
    pub(super) level: usize,
    /// The bounds of the endpoints like these, if they have some besides the level's.
    pub(super) kind: Option<usize>,
    pub(super) count: u64,
    /// As rounded; 0 where the class is counted with 1.
    pub(super) weight: u32,
    /// Picks that the class gains with each step, in parts of 2 to [`SLOPE_BITS`], rounded up.
    pub(super) slope: u128,
    /// `p`.
    share: u64,
    /// `q`.
    largest_share: u64,
    /// Whole steps from one moment to the next, and what remains: `q / p` in parts of 2p.
    apart: u64,
    remainder: u64,
    /// What has remained so far, less than 2p.
    rest: u64,
}

impl ClassLine {
    /// The line at its beginning.
    pub(super) fn new(class: &Class, kind: Option<usize>, largest_share: Ratio) -> Self {
        // Two bits are left for 2q and for the sums of rest and remainder.
        let (p, q) = words(class.share / largest_share, 61);
        let p = p.max(1);
        let rise = u128::from(class.count) * u128::from(p);
        Self {
            level: class.level,
            kind,
            count: class.count.into(),
            weight: 0,
            slope: (rise << SLOPE_BITS).div_ceil(q.into()),
            share: p,
            largest_share: q,
            apart: q / p,
            remainder: 2 * (q % p),
            rest: 0,
        }
    }

    /// What each endpoint of the class weighs.
    pub(super) fn counted(&self) -> u32 {
        self.weight.max(1)
    }

    /// Weighs one more from `now` on; when it will again.
    pub(super) fn grow(&mut self, now: u32) -> u32 {
        let unit = 2 * self.share;
        self.weight += 1;
        self.rest += self.remainder;
        let carry = u64::from(self.rest >= unit);
        self.rest -= carry * unit;
        let next = u64::from(now) + self.apart + carry;
        u32::try_from(next).unwrap_or(u32::MAX)
    }

    /// Weighs what it does at `largest`; when it will weigh one more.
    pub(super) fn leap(&mut self, largest: u32) -> u32 {
        let (p, q) = (u128::from(self.share), u128::from(self.largest_share));
        let weight = (2 * u128::from(largest) * p + q) / (2 * q);
        self.weight = u32::try_from(weight).unwrap_or(u32::MAX);
        // One less than 2p is added to round up.
        let next = q * (2 * weight + 1) + 2 * p - 1;
        self.rest = u64::try_from(next % (2 * p)).unwrap_or(0);
        u32::try_from(next / (2 * p)).unwrap_or(u32::MAX)
    }
}
