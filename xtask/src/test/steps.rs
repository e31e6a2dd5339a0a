//! Defines the steps of `cargo xtask test` in their order.

use std::process::Command;
use std::time::Instant;

use super::commands::{cargo_with, gate, runner, xtask};
use super::run::CommandResult;
use super::step_result::StepResult;
use super::times::{self, Timed};
use super::{alone, browser, deny, failures, fuzz, machete, semver};
use crate::conformance::FAST;
use testbed::TestCounts;
use testbed::vm::suite::LONG;
use testbed::{cargo, paths};

/// The steps of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Scope {
    /// Those that every change must pass.
    Gate,
    /// All, with the long ones.
    All,
}

/// Which other steps may run at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Concurrency {
    /// None.
    Exclusive,
    /// Waiting ones: this step keeps the processors busy.
    CpuBound,
    /// CPU-bound ones: this step mostly waits.
    Waiting,
}

pub(super) struct TestStep {
    pub(super) name: &'static str,
    pub(super) purpose: &'static str,
    /// The smallest scope that contains it.
    pub(super) scope: Scope,
    pub(super) concurrency: Concurrency,
    pub(super) run: fn(Scope) -> StepResult,
}

pub(super) struct FinishedStep {
    pub(super) counts: TestCounts,
    pub(super) time: Timed,
    pub(super) tests: Vec<Timed>,
}

/// The steps in the order in which they run.
pub(super) const ALL: &[TestStep] = &[
    TestStep {
        name: "format",
        purpose: "rustfmt has nothing to change",
        scope: Scope::Gate,
        concurrency: Concurrency::Exclusive,
        run: |_| gate(cargo_with(cargo::command(), &["fmt", "--all", "--check"])),
    },
    TestStep {
        name: "build",
        purpose: "what the later steps run on this machine",
        scope: Scope::Gate,
        concurrency: Concurrency::Exclusive,
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
    TestStep {
        name: "controlplane",
        purpose: "what a real API server says, of the newest Kubernetes",
        scope: Scope::Gate,
        concurrency: Concurrency::Waiting,
        run: |scope| controlplane("newest", scope),
    },
    TestStep {
        name: "oldest",
        purpose: "the same of the oldest Kubernetes that we support",
        scope: Scope::All,
        concurrency: Concurrency::Waiting,
        run: |scope| controlplane("oldest", scope),
    },
    TestStep {
        name: "kube-proxy",
        purpose: "the real kube-proxy in ipvs mode programs the same tables, on a hundred random clusters",
        scope: Scope::All,
        concurrency: Concurrency::Exclusive,
        run: |_| kube_proxy(),
    },
    // These three do not need cargo's lock, so that the step beside them can build its tests.
    TestStep {
        name: "browser",
        purpose: "a browser is here for the page of simulate, or is installed",
        scope: Scope::Gate,
        concurrency: Concurrency::CpuBound,
        run: |_| browser::ensure(),
    },
    TestStep {
        name: "dependencies",
        purpose: "licences, banned crates and sources of every dependency, and that each is used",
        scope: Scope::Gate,
        concurrency: Concurrency::CpuBound,
        run: |_| dependencies(),
    },
    TestStep {
        name: "advisories",
        purpose: "known security advisories, where the database can be had",
        scope: Scope::Gate,
        concurrency: Concurrency::CpuBound,
        run: |_| deny::advisories(),
    },
    TestStep {
        name: "lints",
        purpose: "clippy has no warning, in every target and feature",
        scope: Scope::Gate,
        concurrency: Concurrency::CpuBound,
        run: |_| gate(clippy()),
    },
    TestStep {
        name: "alone",
        purpose: "each crate builds with its own manifest only",
        scope: Scope::All,
        concurrency: Concurrency::CpuBound,
        run: |_| alone::check(),
    },
    TestStep {
        name: "tests",
        purpose: "unit, property and golden tests",
        scope: Scope::Gate,
        concurrency: Concurrency::CpuBound,
        run: |_| plain_tests(),
    },
    TestStep {
        name: "doctests",
        purpose: "the examples in the documentation of public items",
        scope: Scope::Gate,
        concurrency: Concurrency::CpuBound,
        run: |_| runner(tests(&["--doc"])),
    },
    TestStep {
        name: "rustdoc",
        purpose: "the documentation builds without a warning",
        scope: Scope::Gate,
        concurrency: Concurrency::CpuBound,
        run: |_| gate(rustdoc()),
    },
    TestStep {
        name: "tidy",
        purpose: "tree, documents and dependency edges say the same thing",
        scope: Scope::Gate,
        concurrency: Concurrency::CpuBound,
        run: |_| gate(xtask(&["tidy"])),
    },
    // Beside `controlplane`, because `kernels` waits for this build.
    TestStep {
        name: "guests",
        purpose: "the programs and tests that run in guests build",
        scope: Scope::Gate,
        concurrency: Concurrency::CpuBound,
        run: |_| gate(xtask(&["vm", "test", "--no-run"])),
    },
    TestStep {
        name: "book",
        purpose: "the pages of `docs` build as a website, and its links lead somewhere",
        scope: Scope::All,
        concurrency: Concurrency::CpuBound,
        run: |_| gate(xtask(&["book"])),
    },
    TestStep {
        name: "semver",
        purpose: "the libraries break nothing that their last release promised",
        scope: Scope::All,
        concurrency: Concurrency::CpuBound,
        run: |_| semver(),
    },
    TestStep {
        name: "oracle",
        purpose: "two engines on random clusters, many more than in `tests`",
        scope: Scope::All,
        concurrency: Concurrency::CpuBound,
        run: |_| oracle(),
    },
    TestStep {
        name: "fuzz",
        purpose: "each fuzz target for a minute",
        scope: Scope::All,
        concurrency: Concurrency::Exclusive,
        run: |_| fuzz::all(),
    },
    TestStep {
        name: "kernels",
        purpose: "the kernel tests on Linux 6.1, 6.12 and Debian's newest, side by side",
        scope: Scope::Gate,
        concurrency: Concurrency::Exclusive,
        run: |scope| kernels(scope),
    },
    TestStep {
        name: "images",
        purpose: "the container images come out the same twice, byte for byte",
        scope: Scope::Gate,
        concurrency: Concurrency::Exclusive,
        run: |_| runner(xtask(&["image", "--profile", "guest", "--check"])),
    },
    TestStep {
        name: "lab",
        purpose: "our images as real pods on three real nodes",
        scope: Scope::Gate,
        concurrency: Concurrency::Exclusive,
        run: |scope| lab("newest", scope),
    },
    TestStep {
        name: "lab-oldest",
        purpose: "the same with the oldest Kubernetes that we support, kubelets included",
        scope: Scope::All,
        concurrency: Concurrency::Exclusive,
        run: |scope| lab("oldest", scope),
    },
    TestStep {
        name: "conformance",
        purpose: "Kubernetes' own end-to-end tests of the network, in the lab",
        scope: Scope::Gate,
        concurrency: Concurrency::Exclusive,
        run: conformance,
    },
    TestStep {
        name: "demo",
        purpose: "the demo's own assertions, on Linux 6.12",
        scope: Scope::Gate,
        concurrency: Concurrency::Exclusive,
        run: |_| runner(xtask(&["demo"])),
    },
];

impl TestStep {
    /// Runs the step, prints its result, and its output if it failed.
    pub(super) fn run(&self, scope: Scope) -> FinishedStep {
        anstream::println!("test: {} ({})", self.name, self.purpose);
        let started = Instant::now();
        let StepResult { counts, output } = (self.run)(scope);
        let seconds = started.elapsed().as_secs_f64();
        if counts.failed > 0 {
            show(self.name, &output);
        }
        let verdict = if counts.failed == 0 { "ok" } else { "FAILED" };
        anstream::println!("test: {} {verdict}: {counts} in {seconds:.1} s", self.name);
        let name = self.name.to_owned();
        FinishedStep {
            counts,
            time: Timed { name, seconds },
            tests: times::of_tests(self.name, &output),
        }
    }
}

/// Prints the failures in the output of a failed step, and stores the whole output in a file.
fn show(name: &str, output: &str) {
    let log = paths::cache().join(format!("test-{name}.log"));
    let kept = std::fs::create_dir_all(paths::cache()).and_then(|()| std::fs::write(&log, output));
    // One call, because another step may print at the same time.
    let lines = failures::excerpt(output, kept.is_ok().then_some(&*log));
    anstream::println!("  | {}", lines.join("\n  | "));
}

/// Passes `-D warnings` to our crates only, so that dependencies are built once for lints and tests.
fn clippy() -> Command {
    let mut command = cargo_with(cargo::whole("clippy"), &["--all-targets", "--keep-going"]);
    command.args(["--quiet", "--", "-D", "warnings"]);
    command
}

fn tests(arguments: &[&str]) -> Command {
    let mut command = cargo_with(cargo::whole("test"), &["--no-fail-fast"]);
    // A test run never updates snapshots.
    command.args(arguments).env("INSTA_UPDATE", "no");
    command
}

/// Runs the tests that need only this machine, with the time of each.
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

/// Makes cargo start test binaries, but not the compiler, with the variable that enables `--report-time`.
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

/// Clusters for each of the oracle's tests.
const ORACLE_CASES: &str = "20000";

/// Runs the oracle on other clusters every day.
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

/// Runs cargo-deny and cargo-machete.
fn dependencies() -> StepResult {
    let StepResult {
        mut counts,
        mut output,
    } = deny::check();
    let unused = machete::check();
    counts.add(TestCounts::gate(unused.success));
    output.push_str(&unused.output);
    StepResult::of(counts, output)
}

/// Runs cargo-semver-checks, or prints a line if there is no release to compare with.
fn semver() -> StepResult {
    let Some(CommandResult { success, output }) = semver::check() else {
        anstream::println!(
            "test:   no tag v* is an ancestor, so there is no release to compare with"
        );
        return StepResult::of(TestCounts::default(), String::new());
    };
    StepResult::gate(success, output)
}

fn controlplane(version: &str, scope: Scope) -> StepResult {
    let mut command = xtask(&["controlplane", "--version", version, "test"]);
    command.args(["--skip", KUBE_PROXY]);
    if scope == Scope::Gate {
        command.args(["--skip", LONG]);
    }
    runner(command)
}

/// The tests that compare with a running kube-proxy.
const KUBE_PROXY: &str = "kube_proxy::alone";

fn kube_proxy() -> StepResult {
    let command = ["controlplane", "test", "--package", "cli", KUBE_PROXY];
    runner(xtask(&command))
}

fn kernels(scope: Scope) -> StepResult {
    let mut command = xtask(&["vm", "test"]);
    if scope == Scope::Gate {
        command.arg("--gate");
    }
    runner(command)
}

/// Scenes of the lab that are not in the gate.
const SCENES_OF_MINUTES: [&str; 6] = [
    LONG,
    "migration",
    "traffic_continues",
    "two_proxies",
    "announcer",
    "cluster_dns",
];

/// Runs the tests in the lab.
fn lab(version: &str, scope: Scope) -> StepResult {
    let mut command = xtask(&["lab", "test", "--version", version]);
    if scope == Scope::Gate {
        for scene in SCENES_OF_MINUTES {
            command.args(["--skip", scene]);
        }
    }
    runner(command)
}

/// Runs upstream's tests. The gate runs a few fast ones.
fn conformance(scope: Scope) -> StepResult {
    let mut command = xtask(&["conformance"]);
    if scope == Scope::Gate {
        for regex in FAST {
            command.args(["--focus", regex]);
        }
    }
    runner(command)
}
