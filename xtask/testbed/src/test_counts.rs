//! Counts tests that passed and failed.

use std::fmt;

/// The counts. Printed, they are the closing line of every command that runs tests.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct TestCounts {
    pub passed: usize,
    pub failed: usize,
}

impl TestCounts {
    /// Counts a check that is no test runner as one test.
    pub fn gate(success: bool) -> Self {
        Self {
            passed: usize::from(success),
            failed: usize::from(!success),
        }
    }

    pub fn add(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
    }
}

impl fmt::Display for TestCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed", self.passed, self.failed)
    }
}
