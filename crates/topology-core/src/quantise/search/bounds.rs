//! Checks whether a group is within its tolerance, and for how many steps it cannot be.

use super::integers::to_integers;
use super::line::{ClassLine, SLOPE_BITS};
use crate::quantise::groups::tolerance;
use crate::ratio::Ratio;

/// The picks of some classes, and their largest growth for a while.
#[derive(Default)]
pub(super) struct PickSum {
    pub(super) picks: u64,
    /// How many picks rounding may have delayed: one for each endpoint.
    behind: u64,
    /// Picks gained per step, in parts of 2^[`SLOPE_BITS`], rounded up.
    slope: u128,
}

impl PickSum {
    /// Resets the growth to zero.
    pub(super) fn stand_still(&mut self) {
        (self.behind, self.slope) = (0, 0);
    }

    /// Adds the growth of `line`.
    pub(super) fn grow_with(&mut self, line: &ClassLine) {
        self.behind += line.count;
        self.slope += line.slope;
    }

    /// The least number of steps until there are `desired` picks.
    fn steps_to(&self, desired: u128) -> u128 {
        let missing = desired.saturating_sub(u128::from(self.picks) + u128::from(self.behind));
        // A number that does not fit is beyond every limit.
        match (missing.min(u64::MAX.into()) << SLOPE_BITS).checked_div(self.slope) {
            Some(steps) => steps,
            None if missing == 0 => 0,
            None => u128::MAX,
        }
    }
}

/// The range of picks of one group within its tolerance, as fractions of the total.
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
            least: to_integers(desired - tolerance, 64),
            most: to_integers(desired + tolerance, 64),
        }
    }

    /// Whether the picks are within the tolerance for a total of `all`.
    pub(super) fn hold(&self, all: &PickSum) -> bool {
        let (picks, total) = (u128::from(self.sum.picks), u128::from(all.picks));
        let at_least = u128::from(self.least.0) * total <= picks * u128::from(self.least.1);
        at_least && picks * u128::from(self.most.1) <= u128::from(self.most.0) * total
    }

    /// The least number of steps until they are. Picks and total never decrease: too few picks have to grow, and for
    /// too many the total has to grow.
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
