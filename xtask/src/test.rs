//! `cargo xtask test`: everything, on a fresh machine, with one closing line.
//!
//! A gate that is not a test runner (format, lints, tidy, licences ...) counts as one test;
//! a runner counts as what it reports. A failing step shows its output and the next one runs.

mod browser;
mod deny;
mod failures;
mod fuzz;
mod machete;
mod run;
mod schedule;
mod semver;
mod step_result;
mod steps;
mod tally;
mod times;

use std::process::ExitCode;
use std::time::Instant;

use anyhow::ensure;

use steps::{Reach, Step};

/// Options of `cargo xtask test`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The long suites, too: docs/testing.md says which.
    #[arg(long)]
    all: bool,
    /// Run only these steps (repeat the flag; names as `--list` prints them).
    #[arg(long, value_name = "STEP")]
    only: Vec<String>,
    /// Name the steps and stop.
    #[arg(long)]
    list: bool,
}

/// Runs every step, then prints how long each took and `N passed, N failed`.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let reach = if args.all { Reach::All } else { Reach::Gate };
    if args.list {
        for step in steps::ALL {
            let where_else = if step.reach == Reach::All {
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
    let chosen = |step: &&Step| match &*args.only {
        [] => step.reach <= reach,
        only => only.iter().any(|name| name == step.name),
    };
    let started = Instant::now();
    let steps: Vec<&Step> = steps::ALL.iter().filter(chosen).collect();
    let done = schedule::run(&steps, reach);
    anstream::print!("{}", times::table(&done.steps, done.tests));
    let minutes = started.elapsed().as_secs_f64() / 60.0;
    anstream::println!("test: all steps took {minutes:.1} min");
    anstream::println!("{}", done.tally);
    Ok(if done.tally.failed == 0 && done.tally.passed > 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
