//! Searches the smallest rounded weights within the tolerance, in machine integers.
//!
//! It increases m, the largest weight. Each step checks only the classes whose weight changes. If a group is so far off
//! that it cannot be within the tolerance for many steps, the search skips them.

mod bounds;
mod integers;
mod line;
#[cfg(test)]
mod tests;

use super::class::Class;
use super::groups::ShareGroups;
use crate::ratio::{Ratio, gcd};
use bounds::{Bounds, PickSum};
use line::ClassLine;

/// Lines that are compared together.
const CHUNK: usize = 8;
/// Computing a skip costs about as much as so many steps, so it is not done more often.
const STRIDE: u32 = 128;

/// The state of the search.
pub(super) struct Search {
    /// The largest weight so far.
    largest: u32,
    /// The value of m at which each line's weight increases; separate from the lines, because every step reads all of
    /// them.
    due: Vec<u32>,
    lines: Vec<ClassLine>,
    /// The limits of each of the [`ShareGroups`].
    bounds: Vec<Bounds>,
    /// The group that was last outside its tolerance, and most likely still is.
    suspect: usize,
    /// The sum of all levels.
    all: PickSum,
    /// The value of m at which to compute a skip again.
    look_ahead: u32,
}

impl Search {
    /// The initial state: every weight is 1.
    pub(super) fn new(classes: &[Class]) -> Self {
        let largest_share = classes.iter().map(|class| class.share).max();
        let largest_share = largest_share.unwrap_or(Ratio::ONE);
        let groups = ShareGroups::of(classes);
        let lines = classes.iter().zip(&groups.kinds);
        let lines = lines.map(|(class, kind)| ClassLine::new(class, *kind, largest_share));
        let mut search = Self {
            largest: 0,
            due: Vec::new(),
            lines: lines.collect(),
            bounds: groups.desired.into_iter().map(Bounds::new).collect(),
            suspect: 0,
            all: PickSum::default(),
            look_ahead: 0,
        };
        search.leap(0);
        search
    }

    /// The first weights up to `limit` that are within the tolerance. The search stays there, or at the limit.
    pub(super) fn up_to(&mut self, limit: u32) -> Option<Vec<u32>> {
        while self.largest < limit {
            self.advance(limit);
            if self.is_near() {
                return Some(self.weights());
            }
        }
        None
    }

    /// The current weights, in lowest terms.
    pub(super) fn weights(&self) -> Vec<u32> {
        let common = |common, line: &ClassLine| gcd(common, u128::from(line.counted()));
        let common = u32::try_from(self.lines.iter().fold(0, common))
            .unwrap_or(1)
            .max(1);
        self.lines
            .iter()
            .map(|line| line.counted() / common)
            .collect()
    }

    /// Whether all groups are within the tolerance.
    fn is_near(&mut self) -> bool {
        let fails = |bounds: &Bounds| !bounds.hold(&self.all);
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

    /// Does one step, or skips steps that cannot succeed.
    fn advance(&mut self, limit: u32) {
        if self.largest < self.look_ahead {
            return self.step();
        }
        let idle = self.idle();
        if idle < STRIDE {
            self.look_ahead = self.largest + STRIDE;
            return self.step();
        }
        self.leap(self.largest.saturating_add(idle).min(limit));
    }

    /// The least number of steps until every group can be within its tolerance, or until a line grows that would not
    /// within a stride: those lines count as constant.
    fn idle(&mut self) -> u32 {
        self.all.stand_still();
        self.bounds
            .iter_mut()
            .for_each(|bounds| bounds.sum.stand_still());
        let mut still = u32::MAX;
        for (due, line) in self.due.iter().zip(&self.lines) {
            let steps = due.saturating_sub(self.largest);
            if steps > STRIDE {
                still = still.min(steps);
                continue;
            }
            self.all.grow_with(line);
            sums(&mut self.bounds, line).for_each(|sum| sum.grow_with(line));
        }
        let idle = self.bounds.iter().map(|bounds| bounds.idle(&self.all));
        idle.max().unwrap_or(0).min(still)
    }

    fn step(&mut self) {
        self.largest += 1;
        for (due, lines) in self.due.chunks_mut(CHUNK).zip(self.lines.chunks_mut(CHUNK)) {
            // Counted instead of searched, so that the compiler vectorises the comparison.
            let now: u32 = due.iter().map(|due| u32::from(*due == self.largest)).sum();
            if now == 0 {
                continue;
            }
            for (due, line) in due.iter_mut().zip(lines) {
                if *due != self.largest {
                    continue;
                }
                *due = line.grow(*due);
                // Below 1 the weight counts as 1 already.
                if line.weight > 1 {
                    self.all.picks += line.count;
                    sums(&mut self.bounds, line).for_each(|sum| sum.picks += line.count);
                }
            }
        }
    }

    /// Continues at `largest`.
    fn leap(&mut self, largest: u32) {
        self.largest = largest;
        self.due = self
            .lines
            .iter_mut()
            .map(|line| line.leap(largest))
            .collect();
        self.all.picks = 0;
        self.bounds
            .iter_mut()
            .for_each(|bounds| bounds.sum.picks = 0);
        for line in &self.lines {
            let picks = line.count * u64::from(line.counted());
            self.all.picks += picks;
            sums(&mut self.bounds, line).for_each(|sum| sum.picks += picks);
        }
    }
}

/// The sums that include `line`: its level, and its kind.
fn sums<'a>(bounds: &'a mut [Bounds], line: &ClassLine) -> impl Iterator<Item = &'a mut PickSum> {
    let (level, kind) = (line.level, line.kind);
    bounds
        .iter_mut()
        .enumerate()
        .filter(move |(at, _)| *at == level || Some(*at) == kind)
        .map(|(_, bounds)| &mut bounds.sum)
}
