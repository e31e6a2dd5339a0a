//! cargo-deny: licences, banned crates and sources, and advisories where the database can be had.

use std::path::PathBuf;
use std::process::Command;

use super::run::{Finished, run};
use super::step_result::StepResult;
use super::tally::Tally;
use crate::tools::{self, Tool};
use testbed::paths;

const DENY: Tool = Tool {
    name: "cargo-deny",
    version: "^0.20",
    arguments: &[],
};

/// Licences, bans and sources: one gate.
pub(super) fn check() -> StepResult {
    let finished = match program() {
        Ok(program) => deny(&program, &["bans", "licenses", "sources"]),
        Err(finished) => finished,
    };
    StepResult::gate(finished.success, finished.output)
}

/// Advisories: one gate where the database can be fetched, else one line that says so.
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
        return StepResult::of(Tally::default(), String::new());
    }
    StepResult::gate(finished.success, finished.output)
}

fn deny(program: &PathBuf, checks: &[&str]) -> Finished {
    let mut command = Command::new(program);
    command
        .current_dir(paths::root())
        .args(["--log-level", "error", "check"])
        .args(checks);
    run(command)
}

/// Where cargo-deny is, installed into the cache first if it is missing.
fn program() -> Result<PathBuf, Finished> {
    tools::program(&DENY).map_err(|error| Finished {
        success: false,
        output: format!("{error:#}\n"),
    })
}
