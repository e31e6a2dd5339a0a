//! The stages of a decision, in the order in which they are taken.
//!
//! One stage, one file. Some act only on options that no policy of this version has; the table keeps their place and
//! says why they have nothing to do.

use super::work::Work;
use super::{s00_usable, s04_tiers, s06_empty, s09_share, s10_weights, s11_emit};

/// One stage of a decision.
#[derive(Debug, Clone, Copy)]
pub struct Stage {
    /// 0 to 11; the reference of every note and every page about it.
    pub number: u8,
    /// One word for it.
    pub name: &'static str,
    step: Step,
}

#[derive(Debug, Clone, Copy)]
enum Step {
    Runs(fn(&mut Work<'_>)),
    /// Nothing can ask for it yet; says what would.
    Idle(&'static str),
}

/// Every stage.
pub const STAGES: [Stage; 12] = [
    runs(0, "usable", s00_usable::run),
    idle(1, "drains", "no drain can be declared in this version"),
    idle(2, "avoid", "no policy of this version avoids a domain"),
    idle(
        3,
        "panic",
        "no policy of this version has a panic threshold",
    ),
    runs(4, "levels", s04_tiers::run),
    idle(
        5,
        "thresholds",
        "no policy of this version asks a level for more than one endpoint",
    ),
    runs(6, "empty", s06_empty::run),
    idle(
        7,
        "spill",
        "no policy of this version spills before a level is empty",
    ),
    idle(8, "cap", "no policy of this version caps a level's share"),
    runs(9, "shares", s09_share::run),
    runs(10, "weights", s10_weights::run),
    runs(11, "emit", s11_emit::run),
];

const fn runs(number: u8, name: &'static str, run: fn(&mut Work<'_>)) -> Stage {
    let step = Step::Runs(run);
    Stage { number, name, step }
}

const fn idle(number: u8, name: &'static str, because: &'static str) -> Stage {
    let step = Step::Idle(because);
    Stage { number, name, step }
}

impl Stage {
    /// Why the stage has nothing to do in this version, if so.
    pub const fn idle_because(&self) -> Option<&'static str> {
        match self.step {
            Step::Runs(_) => None,
            Step::Idle(because) => Some(because),
        }
    }

    pub(super) fn run(&self, work: &mut Work<'_>) {
        if let Step::Runs(run) = self.step {
            run(work);
        }
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
