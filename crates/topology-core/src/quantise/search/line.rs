//! The weight of one class as a step function of the largest weight.
//!
//! With the largest weight m, a class whose share is p/q of the largest gets `max(1, round(m p / q))`, halves rounded
//! up: its weight is k from `m = ceil(q (2k - 1) / 2p)` on. These values of m have the distance q/p, so each follows
//! from the previous one by an addition.

use super::integers::to_integers;
use crate::quantise::class::Class;
use crate::ratio::Ratio;

/// Slopes are in parts of 2 to this power.
pub(super) const SLOPE_BITS: u32 = 32;

pub(super) struct ClassLine {
    pub(super) level: usize,
    /// The limits of the endpoints with the same share, in addition to those of the level.
    pub(super) kind: Option<usize>,
    pub(super) count: u64,
    /// The rounded weight; 0 if the class counts with 1.
    pub(super) weight: u32,
    /// Picks gained per step, in parts of 2 to [`SLOPE_BITS`], rounded up.
    pub(super) slope: u128,
    /// `p`.
    share: u64,
    /// `q`.
    largest_share: u64,
    /// Whole steps between two increases, and the remainder: `q / p` in parts of 2p.
    apart: u64,
    remainder: u64,
    /// The accumulated remainder, less than 2p.
    rest: u64,
}

impl ClassLine {
    /// The line at the smallest weight.
    pub(super) fn new(class: &Class, kind: Option<usize>, largest_share: Ratio) -> Self {
        // Two bits are reserved for 2q and for the sums of remainders.
        let (p, q) = to_integers(class.share / largest_share, 61);
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

    /// The weight of each endpoint of the class.
    pub(super) fn counted(&self) -> u32 {
        self.weight.max(1)
    }

    /// Increases the weight by one at `now`; returns the value of m for the next increase.
    pub(super) fn grow(&mut self, now: u32) -> u32 {
        let unit = 2 * self.share;
        self.weight += 1;
        self.rest += self.remainder;
        let carry = u64::from(self.rest >= unit);
        self.rest -= carry * unit;
        let next = u64::from(now) + self.apart + carry;
        u32::try_from(next).unwrap_or(u32::MAX)
    }

    /// Sets the weight for `largest`; returns the value of m for the next increase.
    pub(super) fn leap(&mut self, largest: u32) -> u32 {
        let (p, q) = (u128::from(self.share), u128::from(self.largest_share));
        let weight = (2 * u128::from(largest) * p + q) / (2 * q);
        self.weight = u32::try_from(weight).unwrap_or(u32::MAX);
        // Adds 2p - 1 to round up.
        let next = q * (2 * weight + 1) + 2 * p - 1;
        self.rest = u64::try_from(next % (2 * p)).unwrap_or(0);
        u32::try_from(next / (2 * p)).unwrap_or(u32::MAX)
    }
}
