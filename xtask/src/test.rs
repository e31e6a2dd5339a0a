//! `cargo xtask test`: runs every check and test, and ends with one line of counts.
//!
//! A step that is no test runner (format, lints, tidy, licences ...) counts as one test. A test runner counts as the
//! tests that it reports. A failed step prints its output, and the next one runs.

mod alone;
mod browser;
mod commands;
mod deny;
mod failures;
mod fuzz;
mod machete;
mod run;
mod runner_output;
mod schedule;
mod semver;
mod step_result;
mod steps;
mod times;

use std::process::ExitCode;
use std::time::Instant;

use anyhow::ensure;

use steps::{Scope, TestStep};

/// Options of `cargo xtask test`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Also run the long suites that docs/testing.md lists.
    #[arg(long)]
    all: bool,
    /// Run only these steps (repeat the flag; names as `--list` prints them).
    #[arg(long, value_name = "STEP")]
    only: Vec<String>,
    /// List the steps and exit.
    #[arg(long)]
    list: bool,
}

/// Runs the steps, then prints the time of each and `N passed, N failed`.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let scope = if args.all { Scope::All } else { Scope::Gate };
    if args.list {
        for step in steps::ALL {
            let where_else = if step.scope == Scope::All {
                " (--all)"
            } else {
                ""
            };
            anstream::println!("{:12} {}{where_else}", step.name, step.purpose);
        }
        return Ok(ExitCode::SUCCESS);
    }
    for name in &args.only {
        let known = steps::ALL.iter().any(|step| step.name == name);
        ensure!(
            known,
            "there is no step {name}; `cargo xtask test --list` names them"
        );
    }
    let chosen = |step: &&TestStep| match &*args.only {
        [] => step.scope <= scope,
        only => only.iter().any(|name| name == step.name),
    };
    let started = Instant::now();
    let steps: Vec<&TestStep> = steps::ALL.iter().filter(chosen).collect();
    let done = schedule::run(&steps, scope);
    anstream::print!("{}", times::table(&done.steps, done.tests));
    let minutes = started.elapsed().as_secs_f64() / 60.0;
    anstream::println!("test: all steps took {minutes:.1} min");
    anstream::println!("{}", done.counts);
    Ok(if done.counts.failed == 0 && done.counts.passed > 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
