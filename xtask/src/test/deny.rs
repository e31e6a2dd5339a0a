//! Runs cargo-deny: licences, banned crates and sources, and advisories if the database can be downloaded.

use std::path::PathBuf;
use std::process::Command;

use super::run::{CommandResult, run};
use super::step_result::StepResult;
use crate::tools::{self, Tool};
use testbed::TestCounts;
use testbed::paths;

const DENY: Tool = Tool {
    name: "cargo-deny",
    version: "^0.20",
    arguments: &[],
};

/// Checks licences, bans and sources.
pub(super) fn check() -> StepResult {
    let finished = match program() {
        Ok(program) => deny(&program, &["bans", "licenses", "sources"]),
        Err(finished) => finished,
    };
    StepResult::gate(finished.success, finished.output)
}

/// Checks advisories. Prints a line and counts no test if the database cannot be downloaded.
pub(super) fn advisories() -> StepResult {
    let finished = match program() {
        Ok(program) => deny(&program, &["advisories"]),
        Err(finished) => finished,
    };
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

fn deny(program: &PathBuf, checks: &[&str]) -> CommandResult {
    let mut command = Command::new(program);
    command
        .current_dir(paths::root())
        .args(["--log-level", "error", "check"])
        .args(checks);
    run(command)
}

/// Returns the path of cargo-deny, and installs it if it is missing.
fn program() -> Result<PathBuf, CommandResult> {
    tools::program(&DENY).map_err(|error| CommandResult {
        success: false,
        output: format!("{error:#}\n"),
    })
}
