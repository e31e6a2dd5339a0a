//! Runs cargo-deny: licences, banned crates and sources, and advisories if the database can be downloaded.

use super::run::{CommandResult, run_tool};
use super::step_result::StepResult;
use crate::tools::Tool;
use testbed::TestCounts;

const DENY: Tool = Tool {
    name: "cargo-deny",
    version: "^0.20",
    arguments: &[],
};

/// Checks licences, bans and sources.
pub(super) fn check() -> StepResult {
    let finished = deny(&["bans", "licenses", "sources"]);
    StepResult::gate(finished.success, finished.output)
}

/// Checks advisories. Prints a line and counts no test if the database cannot be downloaded.
pub(super) fn advisories() -> StepResult {
    let finished = deny(&["advisories"]);
    if finished
        .output
        .contains("failed to fetch advisory database")
    {
        anstream::println!(
            "test:   the advisory database cannot be fetched from here, so advisories were not checked"
        );
        return StepResult::of(TestCounts::default(), String::new());
    }
    StepResult::gate(finished.success, finished.output)
}

fn deny(checks: &[&str]) -> CommandResult {
    run_tool(
        &DENY,
        &[&["--log-level", "error", "check"], checks].concat(),
    )
}
