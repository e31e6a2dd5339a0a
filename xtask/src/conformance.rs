//! `cargo xtask conformance`: runs Kubernetes' own end-to-end tests of the network in the lab, with the agents or with
//! kube-proxy.
//!
//! Each run writes a `JUnit` report that is complete after each test, so a run can be stopped and resumed.

mod junit;
mod page;
mod process;
mod proxy;
mod run;
mod selection;

use std::num::NonZero;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::Context as _;

use junit::{CaseOutcome, Outcomes, Reports, Verdict};
use proxy::Proxy;
use run::Run;
use selection::Pattern;
use testbed::e2e::Suite;
use testbed::paths;

/// The tests of the gate, as `--focus` takes them: each shows a frontend or a rule of its own.
pub(crate) const FAST: &[&str] = &[
    r"Conntrack should be able to cleanup conntrack entries when UDP service target port changes for a NodePort",
    r"DNS should provide DNS for the cluster \[Conformance\]",
    r"ExternalTrafficPolicy: Local .* should target all nodes with endpoints",
    r"ExternalTrafficPolicy: Local .* should work from pods",
    r"Services should allow pods to hairpin back",
    r"Services should be able to change the type from ExternalName to ClusterIP",
    r"Services should be able to create a functioning NodePort service",
    r"Services should be rejected when no endpoints exist",
    r"Services should connect to the named ports exposed by restartable init containers",
    r"Services should fail health check node port if there are only terminating endpoints",
    r"Services should have session affinity work for service with type clusterIP",
    r"Services should preserve source pod IP for traffic thru service cluster IP",
];

/// The exit code for arguments that make no run.
const USAGE: u8 = 2;

/// Lines of a reason that are printed.
const REASON_LINES: usize = 20;

/// Options of `cargo xtask conformance`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Run only tests whose name matches; repeatable.
    #[arg(long, value_name = "REGEX")]
    focus: Vec<Pattern>,
    /// Skip tests whose name matches; repeatable.
    #[arg(long, value_name = "REGEX")]
    skip: Vec<Pattern>,
    /// What serves Services.
    #[arg(long, value_enum, default_value = "ipvs-topo")]
    proxy: Proxy,
    /// Skip the tests that have passed in the reports of this folder, and add the report of this run to them.
    #[arg(long, value_name = "DIR")]
    resume: Option<PathBuf>,
    /// Run so many tests at the same time; the two of rolling updates and those with `[Serial]` in their name run alone, at
    /// the end.
    #[arg(long, value_name = "NUMBER", default_value = "3")]
    procs: NonZero<usize>,
    /// List the selected tests and exit.
    #[arg(long)]
    list: bool,
    /// Write the results in the reports of this folder into docs/conformance.md and exit.
    #[arg(
        long,
        value_name = "DIR",
        conflicts_with_all = ["focus", "skip", "proxy", "resume", "procs", "list"]
    )]
    publish: Option<PathBuf>,
}

/// Runs the tests. Returns 0 if all passed, 1 if not, 2 for arguments that select no test.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    if let Some(folder) = &args.publish {
        return page::publish(folder);
    }
    let suite = Suite::build()?;
    let selected = selection::select(&suite.names()?, &args.focus, &args.skip);
    let idle = selection::without_tests(&args.focus, &selected);
    if selected.is_empty() || !idle.is_empty() {
        let what = idle.join(", ");
        anstream::eprintln!(
            "error: no test matches {what} (`cargo xtask conformance --list` lists them)"
        );
        return Ok(ExitCode::from(USAGE));
    }
    if args.list {
        return list(args, &selected);
    }
    let folder = args.resume.clone().map_or_else(new_folder, Ok)?;
    let reports = Reports::open(&folder)?;
    let before = reports.merged(args.proxy)?;
    let tests = selection::remaining(&selected, &before);
    anstream::println!(
        "{} of {} selected tests with {}, reports in {}",
        tests.len(),
        selected.len(),
        args.proxy.name(),
        reports.folder().display()
    );
    if !tests.is_empty() {
        let run = Run {
            suite: &suite,
            proxy: args.proxy,
            tests: &tests,
            reports: &reports,
            procs: args.procs.get(),
        };
        let mut done = 0;
        run.go(&mut |ended| {
            done += 1;
            anstream::println!("{}", line(args.proxy, &ended.name, &ended.outcome));
            anstream::eprintln!("  {done} of {} done", tests.len());
        })?;
    }
    Ok(finish(args.proxy, &selected, &reports.merged(args.proxy)?))
}

fn list(args: &Args, selected: &[String]) -> anyhow::Result<ExitCode> {
    let before = match &args.resume {
        Some(folder) => Reports::open(folder)?.merged(args.proxy)?,
        None => Outcomes::new(),
    };
    for name in selection::remaining(selected, &before) {
        anstream::println!("{name}");
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns a folder for a new series of runs.
fn new_folder() -> anyhow::Result<PathBuf> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let now = now.context("the clock is before 1970")?.as_secs();
    let runs = paths::cache().join("conformance").join("runs");
    Ok(runs.join(now.to_string()))
}

/// Formats the result of a test, with the reason indented below it.
fn line(proxy: Proxy, name: &str, outcome: &CaseOutcome) -> String {
    let verdict = match outcome.verdict {
        Verdict::Passed => "ok",
        Verdict::Failed => "FAILED",
        Verdict::Skipped => "skipped",
    };
    let seconds = outcome.seconds;
    let mut text = format!("{}: {verdict} {name} ({seconds:.1} s)", proxy.name());
    for line in outcome.reason.lines().take(REASON_LINES) {
        text.extend(["\n    ", line]);
    }
    text
}

/// Prints what did not pass, and the total.
fn finish(proxy: Proxy, selected: &[String], outcomes: &Outcomes) -> ExitCode {
    let (mut passed, mut skipped) = (0, 0);
    for name in selected {
        match outcomes.get(name) {
            Some(outcome) if outcome.verdict == Verdict::Passed => passed += 1,
            Some(outcome) => {
                skipped += usize::from(outcome.verdict == Verdict::Skipped);
                anstream::println!("{}", line(proxy, name, outcome));
            }
            None => anstream::println!(
                "{}: FAILED {name} (0.0 s)\n    it did not run",
                proxy.name()
            ),
        }
    }
    if skipped > 0 {
        anstream::println!("{skipped} tests do not apply to this cluster");
    }
    let applicable = selected.len() - skipped;
    anstream::println!("{passed} of {applicable} passed");
    if passed == applicable {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
