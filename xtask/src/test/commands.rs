//! Runs the commands of steps and counts their results.

use std::process::Command;

use super::run::{CommandResult, run};
use super::runner_output;
use super::step_result::StepResult;
use crate::tools;
use testbed::paths;

/// Runs a command that is one test.
pub(super) fn gate(command: Command) -> StepResult {
    let CommandResult { success, output } = run(command);
    StepResult::gate(success, output)
}

/// Runs a test runner and counts the tests that it reports.
pub(super) fn runner(command: Command) -> StepResult {
    let CommandResult { success, output } = run(command);
    StepResult::of(runner_output::count(&output, success), output)
}

/// Adds arguments to a cargo command, and turns colours off.
pub(super) fn cargo_with(mut command: Command, arguments: &[&str]) -> Command {
    command.args(arguments).env("CARGO_TERM_COLOR", "never");
    command
}

/// Returns another command of this program.
pub(super) fn xtask(arguments: &[&str]) -> Command {
    let mut command = Command::new(tools::own_program());
    command.args(arguments).current_dir(paths::root());
    command
}
