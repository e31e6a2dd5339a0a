//! The steps of `cargo xtask test`, in their order.

use std::process::Command;
use std::time::Instant;

use super::run::{Finished, run};
use super::step_result::StepResult;
use super::tally::Tally;
use super::times::{self, Timed};
use super::{browser, deny, failures, fuzz, machete, semver};
use crate::tools;
use testbed::vm::suite::LONG;
use testbed::{cargo, paths};

/// How much of the steps a run has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Reach {
    /// What every change waits for.
    Gate,
    /// What is long, too.
    All,
}

/// What may run beside a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Company {
    /// Nothing.
    None,
    /// Steps that wait: it keeps the processors busy.
    Computes,
    /// Steps that compute: it mostly waits.
    Waits,
}

/// One step: how it is called, what it proves, what it runs.
pub(super) struct Step {
    pub(super) name: &'static str,
    pub(super) purpose: &'static str,
    /// The smallest run that has it.
    pub(super) reach: Reach,
    pub(super) company: Company,
    pub(super) run: fn(Reach) -> StepResult,
}

/// A step that ended.
pub(super) struct Ran {
    pub(super) tally: Tally,
    pub(super) time: Timed,
    pub(super) tests: Vec<Timed>,
}

/// Every step in the order they run.
pub(super) const ALL: &[Step] = &[
    Step {
        name: "format",
        purpose: "rustfmt has nothing to change",
        reach: Reach::Gate,
        company: Company::None,
        run: |_| gate(cargo_with(cargo::command(), &["fmt", "--all", "--check"])),
    },
    Step {
        name: "build",
        purpose: "everything that the later steps run on this machine",
        reach: Reach::Gate,
        company: Company::None,
        run: |_| {
            gate(tests(&[
                "--no-run",
                "--lib",
                "--bins",
                "--tests",
                "--examples",
            ]))
        },
    },
    Step {
        name: "controlplane",
        purpose: "what a real API server says, of the newest Kubernetes",
        reach: Reach::Gate,
        company: Company::Waits,
        run: |reach| controlplane("newest", reach),
    },
    Step {
        name: "oldest",
        purpose: "the same of the oldest Kubernetes that we support",
        reach: Reach::All,
        company: Company::Waits,
        run: |reach| controlplane("oldest", reach),
    },
    // These three do not wait for cargo's lock, so that the step beside them finds its tests built meanwhile.
    Step {
        name: "browser",
        purpose: "a browser is here for the page of simulate, or is installed",
        reach: Reach::Gate,
        company: Company::Computes,
        run: |_| browser::ensure(),
    },
    Step {
        name: "dependencies",
        purpose: "licences, banned crates and sources of every dependency, and that each is used",
        reach: Reach::Gate,
        company: Company::Computes,
        run: |_| dependencies(),
    },
    Step {
        name: "advisories",
        purpose: "known security advisories, where the database can be had",
        reach: Reach::Gate,
        company: Company::Computes,
        run: |_| deny::advisories(),
    },
    Step {
        name: "lints",
        purpose: "clippy has no warning, in every target and feature",
        reach: Reach::Gate,
        company: Company::Computes,
        run: |_| gate(clippy()),
    },
    Step {
        name: "alone",
        purpose: "each crate builds with its own manifest only",
        reach: Reach::All,
        company: Company::Computes,
        run: |_| alone(),
    },
    Step {
        name: "tests",
        purpose: "unit, property and golden tests",
        reach: Reach::Gate,
        company: Company::Computes,
        run: |_| plain_tests(),
    },
    Step {
        name: "doctests",
        purpose: "the examples in the documentation of public items",
        reach: Reach::Gate,
        company: Company::Computes,
        run: |_| runner(tests(&["--doc"])),
    },
    Step {
        name: "rustdoc",
        purpose: "the documentation builds without a warning",
        reach: Reach::Gate,
        company: Company::Computes,
        run: |_| gate(rustdoc()),
    },
    Step {
        name: "tidy",
        purpose: "tree, documents and dependency edges say the same thing",
        reach: Reach::Gate,
        company: Company::Computes,
        run: |_| gate(xtask(&["tidy"])),
    },
    Step {
        name: "book",
        purpose: "the pages of `docs` build as a website, and its links lead somewhere",
        reach: Reach::All,
        company: Company::Computes,
        run: |_| gate(xtask(&["book"])),
    },
    Step {
        name: "semver",
        purpose: "the libraries break nothing that their last release promised",
        reach: Reach::All,
        company: Company::Computes,
        run: |_| semver(),
    },
    Step {
        name: "oracle",
        purpose: "two engines on random clusters, many more than in `tests`",
        reach: Reach::All,
        company: Company::Computes,
        run: |_| oracle(),
    },
    Step {
        name: "fuzz",
        purpose: "each fuzz target for a minute",
        reach: Reach::All,
        company: Company::None,
        run: |_| fuzz::all(),
    },
    Step {
        name: "kernels",
        purpose: "the kernel tests on Linux 6.1, 6.12 and Debian's newest, side by side",
        reach: Reach::Gate,
        company: Company::None,
        run: |reach| kernels(reach),
    },
    Step {
        name: "images",
        purpose: "the container images come out the same twice, byte for byte",
        reach: Reach::Gate,
        company: Company::None,
        run: |_| runner(xtask(&["image", "--profile", "guest", "--check"])),
    },
    Step {
        name: "lab",
        purpose: "our images as real pods on three real nodes",
        reach: Reach::Gate,
        company: Company::None,
        run: |reach| lab("newest", reach),
    },
    Step {
        name: "lab-oldest",
        purpose: "the same with the oldest Kubernetes that we support, kubelets included",
        reach: Reach::All,
        company: Company::None,
        run: |reach| lab("oldest", reach),
    },
    Step {
        name: "demo",
        purpose: "the demo's own assertions, on Linux 6.12",
        reach: Reach::Gate,
        company: Company::None,
        run: |_| runner(xtask(&["demo"])),
    },
];

impl Step {
    /// Runs the step and prints one line about it, and its output if it failed.
    pub(super) fn run(&self, reach: Reach) -> Ran {
        anstream::println!("test: {} ({})", self.name, self.purpose);
        let started = Instant::now();
        let StepResult { tally, output } = (self.run)(reach);
        let seconds = started.elapsed().as_secs_f64();
        if tally.failed > 0 {
            show(self.name, &output);
        }
        let verdict = if tally.failed == 0 { "ok" } else { "FAILED" };
        anstream::println!("test: {} {verdict}: {tally} in {seconds:.1} s", self.name);
        let name = self.name.to_owned();
        Ran {
            tally,
            time: Timed { name, seconds },
            tests: times::of_tests(self.name, &output),
        }
    }
}

/// Prints what a failing step says of its failures, and keeps all of its output in a file.
fn show(name: &str, output: &str) {
    let log = paths::cache().join(format!("test-{name}.log"));
    let kept = std::fs::create_dir_all(paths::cache()).and_then(|()| std::fs::write(&log, output));
    // One text: another step may print, too.
    let lines = failures::excerpt(output, kept.is_ok().then_some(&*log));
    anstream::println!("  | {}", lines.join("\n  | "));
}

fn gate(command: Command) -> StepResult {
    let Finished { success, output } = run(command);
    StepResult::gate(success, output)
}

fn runner(command: Command) -> StepResult {
    let Finished { success, output } = run(command);
    StepResult::of(Tally::of_runner(&output, success), output)
}

/// This command of cargo with more arguments, and without colours.
fn cargo_with(mut command: Command, arguments: &[&str]) -> Command {
    command.args(arguments).env("CARGO_TERM_COLOR", "never");
    command
}

/// Another command of ours, by the program that is running.
fn xtask(arguments: &[&str]) -> Command {
    let mut command = Command::new(tools::own_program());
    command.args(arguments).current_dir(paths::root());
    command
}

/// `-D warnings` reaches our crates only, so the dependencies are built once for lints and tests.
fn clippy() -> Command {
    let mut command = cargo_with(cargo::whole("clippy"), &["--all-targets", "--keep-going"]);
    command.args(["--quiet", "--", "-D", "warnings"]);
    command
}

fn tests(arguments: &[&str]) -> Command {
    let mut command = cargo_with(cargo::whole("test"), &["--no-fail-fast"]);
    // A golden that differs fails; it is never written by the test run.
    command.args(arguments).env("INSTA_UPDATE", "no");
    command
}

/// The tests that need nothing but this machine, each with its time.
fn plain_tests() -> StepResult {
    let targets = match cargo::plain_targets() {
        Ok(targets) => targets,
        Err(error) => return StepResult::gate(false, format!("{error:#}\n")),
    };
    let mut command = tests(&["--lib", "--bins", "--examples"]);
    for target in targets {
        command.args(["--test", &target]);
    }
    let words = ["--", "-Zunstable-options", "--report-time"];
    command.args(["--config", &runner_config()]).args(words);
    runner(command)
}

/// Lets cargo start test binaries with the variable that lets them tell times; the compiler does not get it.
fn runner_config() -> String {
    let variable = cargo::REPORTS_TIME;
    format!("target.'cfg(all())'.runner = ['env', '{variable}=1']")
}

fn rustdoc() -> Command {
    let arguments = [
        "--no-deps",
        "--quiet",
        "--keep-going",
        "--document-private-items",
    ];
    let mut command = cargo_with(cargo::whole("doc"), &arguments);
    command.env("RUSTDOCFLAGS", "-D warnings");
    command
}

/// Clusters for each of the oracle's tests; they take about a minute together.
const ORACLE_CASES: &str = "20000";

/// Other clusters every day.
fn oracle() -> StepResult {
    let seed = std::time::UNIX_EPOCH
        .elapsed()
        .map_or(0, |since| since.as_secs() / 86_400);
    anstream::println!("test:   with PROPTEST_RNG_SEED={seed}");
    let mut command = tests(&["--test", "oracle"]);
    command
        .env("ORACLE_CASES", ORACLE_CASES)
        .env("PROPTEST_RNG_SEED", seed.to_string());
    runner(command)
}

/// Two gates: what cargo-deny checks, and that no manifest names a dependency that no source line uses.
fn dependencies() -> StepResult {
    let StepResult {
        mut tally,
        mut output,
    } = deny::check();
    let unused = machete::check();
    tally.add(Tally::gate(unused.success));
    output.push_str(&unused.output);
    StepResult::of(tally, output)
}

/// One gate, or one line that says that there is no release to compare with.
fn semver() -> StepResult {
    let Some(Finished { success, output }) = semver::check() else {
        anstream::println!(
            "test:   no tag v* is an ancestor, so there is no release to compare with"
        );
        return StepResult::of(Tally::default(), String::new());
    };
    StepResult::gate(success, output)
}

fn controlplane(version: &str, reach: Reach) -> StepResult {
    let mut command = xtask(&["controlplane", "--version", version, "test"]);
    if reach == Reach::Gate {
        command.args(["--skip", LONG]);
    }
    runner(command)
}

fn kernels(reach: Reach) -> StepResult {
    let mut command = xtask(&["vm", "test"]);
    if reach == Reach::Gate {
        command.arg("--gate");
    }
    runner(command)
}

/// Scenes that take minutes each are not in the gate.
fn lab(version: &str, reach: Reach) -> StepResult {
    let mut command = xtask(&["lab", "test", "--version", version]);
    if reach == Reach::Gate {
        command.args([
            "--skip",
            LONG,
            "--skip",
            "migration",
            "--skip",
            "whatever_befalls",
            "--skip",
            "two_proxies",
        ]);
    }
    runner(command)
}

/// One gate for each package: features and dependencies that only a neighbour asks for do not help it here.
fn alone() -> StepResult {
    let packages = match cargo::packages() {
        Ok(packages) => packages,
        Err(error) => return StepResult::gate(false, format!("{error:#}\n")),
    };
    let mut total = Tally::default();
    let mut outputs = String::new();
    for name in &packages {
        let check = cargo_with(cargo::command(), &["check", "--quiet", "--package", name]);
        let StepResult { tally, output } = gate(check);
        if tally.failed > 0 {
            outputs.extend([name, " does not build alone:\n", &output]);
        }
        total.add(tally);
    }
    StepResult::of(total, outputs)
}
