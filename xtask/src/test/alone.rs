//! Checks that each package builds with only the features and dependencies of its own manifest.

use super::commands::{cargo_with, gate};
use super::step_result::StepResult;
use testbed::{TestCounts, cargo};

/// Checks every package. Each is one test.
pub(super) fn check() -> StepResult {
    let packages = match cargo::packages() {
        Ok(packages) => packages,
        Err(error) => return StepResult::gate(false, format!("{error:#}\n")),
    };
    let mut total = TestCounts::default();
    let mut outputs = String::new();
    for name in &packages {
        let check = cargo_with(cargo::command(), &["check", "--quiet", "--package", name]);
        let StepResult { counts, output } = gate(check);
        if counts.failed > 0 {
            outputs.extend([name, " does not build alone:\n", &output]);
        }
        total.add(counts);
    }
    StepResult::of(total, outputs)
}
