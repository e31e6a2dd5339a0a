//! `cargo xtask controlplane test`: every package's integration tests against a control plane of their own.

use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

use anyhow::{Context as _, ensure};

use super::folder::{Folder, VARIABLE};
use super::own::Own;
use super::program::Version;
use crate::cargo;
use crate::vm::command::output;
use crate::vm::progress::Step;

/// The feature that marks tests for a real control plane.
const FEATURE: &str = "controlplane-tests";

/// A test with this word in its path runs after the others, with nothing beside it.
const ALONE: &str = "alone";

/// Which tests.
#[derive(clap::Args)]
pub(super) struct Args {
    /// Build and run only this package's tests; may be given again.
    #[arg(long, value_name = "NAME")]
    package: Vec<String>,
    /// Run only tests whose name contains this.
    filter: Option<String>,
}

/// The tests of one binary that match.
struct Binary {
    program: PathBuf,
    shared: Vec<String>,
    alone: Vec<String>,
}

/// Builds the tests, starts a control plane for them, runs them, ends it.
pub(super) fn run(args: &Args, version: Version) -> anyhow::Result<ExitCode> {
    let binaries = list(&build(&args.package)?, args.filter.as_deref().unwrap_or(""))?;
    let count: usize = binaries
        .iter()
        .map(|b| b.shared.len() + b.alone.len())
        .sum();
    ensure!(count > 0, "no test matches");
    let plane = Own::start(version)?;
    let began = Instant::now();
    let passed = run_all(&binaries, &plane.folder, &version.release()?);
    let seconds = began.elapsed().as_secs_f64();
    plane.end()?;
    anstream::eprintln!(
        "  {count} tests against {} took {seconds:.1} s",
        version.release()?
    );
    Ok(ExitCode::from(u8::from(!passed?)))
}

/// Builds the test binaries of the packages `only`, of all when empty.
fn build(only: &[String]) -> anyhow::Result<Vec<PathBuf>> {
    let step = Step::begin("building the tests for a control plane");
    let targets = cargo::targets_with(FEATURE)?;
    for name in only {
        let known = targets.iter().any(|target| target.package == *name);
        ensure!(
            known,
            "the package {name} has no test target that requires the feature {FEATURE}"
        );
    }
    let mut programs = Vec::new();
    for target in targets {
        if only.is_empty() || only.contains(&target.package) {
            let feature = format!("{}/{FEATURE}", target.package);
            let words = ["test", "--no-run", "--package", &target.package];
            let words = [
                &words[..],
                &["--features", &feature, "--test", &target.name],
            ]
            .concat();
            programs.push(cargo::build(&words, &target.name)?);
        }
    }
    step.done(&format!("({} binaries)", programs.len()));
    Ok(programs)
}

fn list(programs: &[PathBuf], filter: &str) -> anyhow::Result<Vec<Binary>> {
    let mut binaries = Vec::new();
    for program in programs {
        let listed = output(Command::new(program).args(["--list", "--format", "terse", filter]))?;
        let tests = listed
            .lines()
            .filter_map(|line| line.strip_suffix(": test"));
        let (alone, shared) = tests
            .map(str::to_owned)
            .partition(|test: &String| test.contains(ALONE));
        binaries.push(Binary {
            program: program.clone(),
            shared,
            alone,
        });
    }
    Ok(binaries)
}

/// Runs those that share first; whether all passed.
fn run_all(binaries: &[Binary], folder: &Folder, release: &str) -> anyhow::Result<bool> {
    let mut passed = true;
    for binary in binaries {
        passed &= run_some(binary, &binary.shared, &[], folder, release)?;
    }
    for binary in binaries {
        passed &= run_some(
            binary,
            &binary.alone,
            &["--test-threads=1"],
            folder,
            release,
        )?;
    }
    Ok(passed)
}

fn run_some(
    binary: &Binary,
    tests: &[String],
    options: &[&str],
    folder: &Folder,
    release: &str,
) -> anyhow::Result<bool> {
    if tests.is_empty() {
        return Ok(true);
    }
    let status = Command::new(&binary.program)
        .arg("--exact")
        .args(options)
        .args(tests)
        .stdin(Stdio::null())
        .env("KUBECONFIG", folder.kubeconfig())
        .env("CONTROLPLANE_PROGRAM", folder.record()?.program)
        .env(VARIABLE, folder.path())
        .env("CONTROLPLANE_XTASK", std::env::current_exe()?)
        .env("CONTROLPLANE_VERSION", release)
        .status()
        .with_context(|| format!("cannot start {}", binary.program.display()))?;
    Ok(status.success())
}
