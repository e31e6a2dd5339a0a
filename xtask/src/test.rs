//! `cargo xtask test`: everything, on a fresh machine, with one closing line.
//!
//! A gate that is not a test runner (format, lints, tidy, licences ...) counts as one test;
//! a runner counts as what it reports. A failing step shows its output and the next one runs.

mod browser;
mod deny;
mod run;
mod steps;
mod tally;

use std::process::ExitCode;
use std::time::Instant;

use anyhow::ensure;

use tally::Tally;

/// Options of `cargo xtask test`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Run only these steps (repeat the flag; names as `--list` prints them).
    #[arg(long, value_name = "STEP")]
    only: Vec<String>,
    /// Name the steps and stop.
    #[arg(long)]
    list: bool,
}

/// Runs every step, then prints `N passed, N failed`.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let steps = steps::ALL;
    if args.list {
        for step in steps {
            anstream::println!("{:12} {}", step.name, step.purpose);
        }
        return Ok(ExitCode::SUCCESS);
    }
    for name in &args.only {
        let known = steps.iter().any(|step| step.name == name);
        ensure!(
            known,
            "there is no step {name}; `cargo xtask test --list` names them"
        );
    }
    let chosen = |name: &str| args.only.is_empty() || args.only.iter().any(|only| only == name);
    let started = Instant::now();
    let mut total = Tally::default();
    for step in steps.iter().filter(|step| chosen(step.name)) {
        let tally = step.run();
        total.add(tally);
    }
    let minutes = started.elapsed().as_secs_f64() / 60.0;
    anstream::println!("test: all steps took {minutes:.1} min");
    anstream::println!("{total}");
    Ok(if total.failed == 0 && total.passed > 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
