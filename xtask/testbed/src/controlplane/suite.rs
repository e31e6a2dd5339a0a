//! Builds and runs the integration tests that require a feature, with environment variables for what they need.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

use anyhow::{Context as _, ensure};

use super::folder::VARIABLE;
use super::program::Version;
use super::scoped::ScopedControlPlane;
use crate::vm::command::output;
use crate::vm::progress::ProgressLine;
use crate::{cargo, coredns};

/// Tests with this word in their path run after the others, one at a time.
const ALONE: &str = "alone";

/// Concurrent tests, on any number of processors: the tests mostly wait.
const SIDE_BY_SIDE: usize = 6;

/// The module of the tests that need `CoreDNS`.
const COREDNS: &str = "coredns";

/// Selects tests.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Build and run only this package's tests; repeatable.
    #[arg(long, value_name = "NAME")]
    package: Vec<String>,
    /// Skip tests whose name contains this; repeatable.
    #[arg(long, value_name = "WORD")]
    skip: Vec<String>,
    /// Run only tests whose name contains this.
    filter: Option<String>,
}

/// `cargo xtask controlplane test`: starts a control plane, runs the tests, and stops it.
pub(super) fn run(args: &Args, version: Version) -> anyhow::Result<ExitCode> {
    let suite = Suite::build("controlplane-tests", args)?;
    // Before the control plane starts, because Go builds it for minutes.
    let coredns = suite.has_module(COREDNS).then(coredns::build);
    let coredns = coredns.transpose()?;
    let plane = ScopedControlPlane::start(version)?;
    let mut environment = vec![
        ("KUBECONFIG", plane.kubeconfig().into()),
        ("CONTROLPLANE_PROGRAM", plane.program().into()),
        (VARIABLE, plane.folder.path().into()),
        ("CONTROLPLANE_XTASK", std::env::current_exe()?.into()),
        ("CONTROLPLANE_VERSION", version.release()?.into()),
    ];
    environment.extend(coredns.map(|program| ("COREDNS_PROGRAM", program.into())));
    let passed = suite.run(SIDE_BY_SIDE, &environment);
    plane.end()?;
    Ok(ExitCode::from(u8::from(!passed?)))
}

/// The built tests.
pub(crate) struct Suite {
    binaries: Vec<Binary>,
}

/// The selected tests of one binary.
struct Binary {
    program: PathBuf,
    shared: Vec<String>,
    alone: Vec<String>,
}

impl Suite {
    /// Builds the test targets that require `feature`, and lists their tests.
    pub(crate) fn build(feature: &str, args: &Args) -> anyhow::Result<Self> {
        let programs = build(feature, &args.package)?;
        let binaries = programs.into_iter().map(|program| list(program, args));
        let suite = Self {
            binaries: binaries.collect::<anyhow::Result<_>>()?,
        };
        ensure!(suite.count() > 0, "no test matches");
        Ok(suite)
    }

    /// Returns whether the path of a selected test begins with the module `name`.
    pub(crate) fn has_module(&self, name: &str) -> bool {
        let prefix = format!("{name}::");
        let tests = self.binaries.iter();
        let mut tests = tests.flat_map(|one| one.shared.iter().chain(&one.alone));
        tests.any(|test| test.starts_with(&prefix))
    }

    fn count(&self) -> usize {
        let binaries = self.binaries.iter();
        binaries.map(|one| one.shared.len() + one.alone.len()).sum()
    }

    /// Runs the shared tests, `at_a_time` at a time, then the others. Returns whether all passed.
    pub(crate) fn run(
        &self,
        at_a_time: usize,
        environment: &[(&str, OsString)],
    ) -> anyhow::Result<bool> {
        let began = Instant::now();
        let mut passed = true;
        for binary in &self.binaries {
            passed &= run_some(binary, &binary.shared, at_a_time, environment)?;
        }
        for binary in &self.binaries {
            passed &= run_some(binary, &binary.alone, 1, environment)?;
        }
        let seconds = began.elapsed().as_secs_f64();
        anstream::eprintln!("  {} tests took {seconds:.1} s", self.count());
        Ok(passed)
    }
}

/// Builds the test binaries of the packages `only`, of all packages if it is empty.
fn build(feature: &str, only: &[String]) -> anyhow::Result<Vec<PathBuf>> {
    let step = ProgressLine::begin(format!("building the tests that need {feature}"));
    let mut targets = cargo::targets_with(feature)?;
    for name in only {
        let known = targets.iter().any(|target| target.package == *name);
        ensure!(
            known,
            "the package {name} has no test target that requires the feature {feature}"
        );
    }
    targets.retain(|target| only.is_empty() || only.contains(&target.package));
    let programs = cargo::build_tests(&targets)?;
    step.done(&format!("({} binaries)", programs.len()));
    Ok(programs)
}

fn list(program: PathBuf, args: &Args) -> anyhow::Result<Binary> {
    let filter = args.filter.as_deref().unwrap_or("");
    let listed = output(Command::new(&program).args(["--list", "--format", "terse", filter]))?;
    let tests = listed
        .lines()
        .filter_map(|line| line.strip_suffix(": test"))
        .filter(|test| !args.skip.iter().any(|word| test.contains(word)));
    let (alone, shared) = tests
        .map(str::to_owned)
        .partition(|test: &String| test.contains(ALONE));
    Ok(Binary {
        program,
        shared,
        alone,
    })
}

fn run_some(
    binary: &Binary,
    tests: &[String],
    at_a_time: usize,
    environment: &[(&str, OsString)],
) -> anyhow::Result<bool> {
    if tests.is_empty() {
        return Ok(true);
    }
    let status = Command::new(&binary.program)
        .args(["-Zunstable-options", "--report-time", "--exact"])
        .env(cargo::REPORTS_TIME, "1")
        .arg(format!("--test-threads={at_a_time}"))
        .args(tests)
        .stdin(Stdio::null())
        .envs(environment.iter().cloned())
        .status()
        .with_context(|| format!("cannot start {}", binary.program.display()))?;
    Ok(status.success())
}
