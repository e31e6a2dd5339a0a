//! The stages of a decision, in order. Each stage is one file.

use super::record::StageRecord;
use super::work::PortWork;
use super::{
    s00_usable, s01_drains, s02_avoid, s03_panic, s04_levels, s05_thresholds, s06_empty, s07_spill,
    s08_cap, s09_share, s10_weights, s11_emit,
};

/// A stage of a decision.
#[derive(Debug, Clone, Copy)]
pub struct Stage {
    /// The number, 0 to 11, to which notes and documentation refer.
    pub number: u8,
    /// The name, one word.
    pub name: &'static str,
    run: fn(&mut PortWork<'_>),
}

/// All stages.
pub const STAGES: [Stage; 12] = [
    stage(0, "usable", s00_usable::run),
    stage(1, "drains", s01_drains::run),
    stage(2, "avoid", s02_avoid::run),
    stage(3, "panic", s03_panic::run),
    stage(4, "levels", s04_levels::run),
    stage(5, "thresholds", s05_thresholds::run),
    stage(6, "empty", s06_empty::run),
    stage(7, "spill", s07_spill::run),
    stage(8, "cap", s08_cap::run),
    stage(9, "shares", s09_share::run),
    stage(10, "weights", s10_weights::run),
    stage(11, "emit", s11_emit::run),
];

/// The first stage that runs once for all traffic. Earlier ones may run once for each part of the traffic.
pub(super) const TOGETHER: u8 = 10;

const fn stage(number: u8, name: &'static str, run: fn(&mut PortWork<'_>)) -> Stage {
    Stage { number, name, run }
}

impl Stage {
    /// Runs the stage and records what it did.
    pub(super) fn run(&self, work: &mut PortWork<'_>) {
        let previous = work.records.last().map(|record| record.after);
        let before =
            previous.unwrap_or_else(|| work.candidates.len().try_into().unwrap_or(u32::MAX));
        (self.run)(work);
        let record = StageRecord {
            number: self.number,
            name: self.name,
            before,
            after: work.chosen(),
            facts: std::mem::take(&mut work.facts),
        };
        work.records.push(record);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stages_are_numbered_in_their_order() {
        let numbers: Vec<u8> = STAGES.iter().map(|stage| stage.number).collect();
        assert_eq!(numbers, (0..12).collect::<Vec<u8>>());
    }
}
