//! Describes how a step ended.

use testbed::TestCounts;

/// The tests that a step counts, and its output.
pub(super) struct StepResult {
    pub(super) counts: TestCounts,
    pub(super) output: String,
}

impl StepResult {
    /// A step that is one test.
    pub(super) fn gate(success: bool, output: String) -> Self {
        let counts = TestCounts::gate(success);
        Self { counts, output }
    }

    /// A step that counts several tests.
    pub(super) fn of(counts: TestCounts, output: String) -> Self {
        Self { counts, output }
    }
}
