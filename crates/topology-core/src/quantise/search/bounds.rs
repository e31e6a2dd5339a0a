//! Whether a level is near enough, and how long it cannot be.

use super::line::{ClassLine, SLOPE_BITS};
use super::words::words;
use crate::quantise::groups::tolerance;
use crate::ratio::Ratio;

/// Picks of some classes, and how fast they may grow for a while.
#[derive(Default)]
pub(super) struct PickSum {
    pub(super) picks: u64,
    /// How far rounding may have kept the picks behind the slope: one for each endpoint.
    behind: u64,
    /// Picks gained with each step, in parts of 2^[`SLOPE_BITS`], rounded up.
    slope: u128,
}

impl PickSum {
    /// Lets nothing grow.
    pub(super) fn stand_still(&mut self) {
        (self.behind, self.slope) = (0, 0);
    }

    /// Lets `line` grow besides.
    pub(super) fn grow_with(&mut self, line: &ClassLine) {
        self.behind += line.count;
        self.slope += line.slope;
    }

    /// How many steps it takes at least to have `desired` picks.
    fn steps_to(&self, desired: u128) -> u128 {
        let missing = desired.saturating_sub(u128::from(self.picks) + u128::from(self.behind));
        // What does not fit is too far by far.
        match (missing.min(u64::MAX.into()) << SLOPE_BITS).checked_div(self.slope) {
            Some(steps) => steps,
            None if missing == 0 => 0,
            None => u128::MAX,
        }
    }
}

/// The range of picks of one level that is near enough, as fractions of the total.
pub(super) struct Bounds {
    pub(super) sum: PickSum,
    least: (u64, u64),
    most: (u64, u64),
}

impl Bounds {
    pub(super) fn new(desired: Ratio) -> Self {
        let tolerance = tolerance(desired);
        Self {
            sum: PickSum::default(),
            least: words(desired - tolerance, 64),
            most: words(desired + tolerance, 64),
        }
    }

    /// Whether the picks are near enough to the desired share of `all`.
    pub(super) fn hold(&self, all: &PickSum) -> bool {
        let (picks, total) = (u128::from(self.sum.picks), u128::from(all.picks));
        let at_least = u128::from(self.least.0) * total <= picks * u128::from(self.least.1);
        at_least && picks * u128::from(self.most.1) <= u128::from(self.most.0) * total
    }

    /// How many steps it takes at least until they are: picks and total never fall, so too few have to grow
    /// themselves, and for too many the total has to.
    pub(super) fn idle(&self, all: &PickSum) -> u32 {
        let part = |picks: u64, (numerator, denominator): (u64, u64)| {
            (u128::from(picks) * u128::from(numerator)).div_ceil(u128::from(denominator.max(1)))
        };
        let too_few = self.sum.steps_to(part(all.picks, self.least));
        let (numerator, denominator) = self.most;
        let too_many = all.steps_to(part(self.sum.picks, (denominator, numerator)));
        u32::try_from(too_few.max(too_many)).unwrap_or(u32::MAX)
    }
}
