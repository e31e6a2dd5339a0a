//! Describes how a step ended.

use super::tally::Tally;

/// The tests that a step counts, and its output.
pub(super) struct StepResult {
    pub(super) tally: Tally,
    pub(super) output: String,
}

impl StepResult {
    /// A step that is one test.
    pub(super) fn gate(success: bool, output: String) -> Self {
        let tally = Tally::gate(success);
        Self { tally, output }
    }

    /// A step that counts several tests.
    pub(super) fn of(tally: Tally, output: String) -> Self {
        Self { tally, output }
    }
}
