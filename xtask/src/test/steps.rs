//! The steps of `cargo xtask test`, cheapest first.

use std::process::Command;
use std::time::Instant;

use super::browser;
use super::deny;
use super::run::{Finished, run};
use super::tally::Tally;
use crate::{cargo, paths};

/// The end of a failing step's output that is shown; all of it is in the log.
const SHOWN_LINES: usize = 120;

/// One step: how it is called, what it proves, what it runs.
pub(super) struct Step {
    pub(super) name: &'static str,
    pub(super) purpose: &'static str,
    run: fn() -> (Tally, String),
}

/// Every step in the order they run.
pub(super) const ALL: &[Step] = &[
    Step {
        name: "format",
        purpose: "rustfmt has nothing to change",
        run: || gate(cargo_with(&["fmt", "--all", "--check"])),
    },
    Step {
        name: "lints",
        purpose: "clippy has no warning, in every target and feature",
        run: || gate(clippy()),
    },
    Step {
        name: "alone",
        purpose: "each crate builds with its own manifest only",
        run: alone,
    },
    Step {
        name: "browser",
        purpose: "a browser is here for the page of simulate, or is installed",
        run: browser::ensure,
    },
    Step {
        name: "tests",
        purpose: "unit, property and golden tests",
        run: || runner(tests(&["--lib", "--bins", "--tests", "--examples"])),
    },
    Step {
        name: "doctests",
        purpose: "the examples in the documentation of public items",
        run: || runner(tests(&["--doc"])),
    },
    Step {
        name: "rustdoc",
        purpose: "the documentation builds without a warning",
        run: || gate(rustdoc()),
    },
    Step {
        name: "tidy",
        purpose: "tree, documents and dependency edges say the same thing",
        run: || gate(xtask(&["tidy"])),
    },
    Step {
        name: "dependencies",
        purpose: "licences, banned crates and sources of every dependency",
        run: deny::check,
    },
    Step {
        name: "advisories",
        purpose: "known security advisories, where the database can be had",
        run: deny::advisories,
    },
    Step {
        name: "kernels",
        purpose: "the kernel tests on Linux 6.1, 6.12 and Debian's newest, side by side",
        run: || runner(xtask(&["vm", "test"])),
    },
    Step {
        name: "controlplane",
        purpose: "what a real API server says, the newest Kubernetes and the oldest that we support side by side",
        run: controlplanes,
    },
    Step {
        name: "images",
        purpose: "the container images come out the same twice, byte for byte",
        run: || runner(xtask(&["image", "--profile", "guest", "--check"])),
    },
    Step {
        name: "lab",
        purpose: "our images as real pods on three real nodes, on good days and bad",
        // The way from kube-proxy and back takes minutes more: `cargo xtask lab test migration`.
        run: || runner(xtask(&["lab", "test", "--skip", "migration"])),
    },
    Step {
        name: "demo",
        purpose: "the demo's own assertions, on Linux 6.12",
        run: || runner(xtask(&["demo"])),
    },
];

impl Step {
    /// Runs the step and prints one line about it, and its output if it failed.
    pub(super) fn run(&self) -> Tally {
        anstream::println!("test: {} ({})", self.name, self.purpose);
        let started = Instant::now();
        let (tally, output) = (self.run)();
        let seconds = started.elapsed().as_secs_f64();
        if tally.failed > 0 {
            show(self.name, &output);
        }
        let verdict = if tally.failed == 0 { "ok" } else { "FAILED" };
        anstream::println!("test: {} {verdict}: {tally} in {seconds:.1} s", self.name);
        tally
    }
}

/// Prints the end of a failing step's output and keeps all of it in a file.
fn show(name: &str, output: &str) {
    let log = paths::cache().join(format!("test-{name}.log"));
    let kept = std::fs::create_dir_all(paths::cache()).and_then(|()| std::fs::write(&log, output));
    let lines: Vec<&str> = output.lines().collect();
    let cut = lines.len().saturating_sub(SHOWN_LINES);
    if cut > 0 && kept.is_ok() {
        anstream::println!("  | ... {cut} lines before these are in {}", log.display());
    }
    for line in lines.iter().skip(cut) {
        anstream::println!("  | {line}");
    }
}

fn gate(command: Command) -> (Tally, String) {
    let Finished { success, output } = run(command);
    (Tally::gate(success), output)
}

fn runner(command: Command) -> (Tally, String) {
    let Finished { success, output } = run(command);
    (Tally::of_runner(&output, success), output)
}

fn cargo_with(arguments: &[&str]) -> Command {
    let mut command = cargo::command();
    command.args(arguments).env("CARGO_TERM_COLOR", "never");
    command
}

/// Another command of ours, by the program that is running.
fn xtask(arguments: &[&str]) -> Command {
    let program = std::env::current_exe().unwrap_or_default();
    let program = program.to_string_lossy();
    // A step that builds the workspace may have replaced our file; the new one has the same path.
    let mut command = Command::new(program.trim_end_matches(" (deleted)"));
    command.args(arguments).current_dir(paths::root());
    command
}

/// `-D warnings` reaches our crates only, so the dependencies are built once for lints and tests.
fn clippy() -> Command {
    let arguments = [
        "clippy",
        "--workspace",
        "--all-targets",
        "--all-features",
        "--keep-going",
    ];
    let mut command = cargo_with(&arguments);
    command.args(["--quiet", "--", "-D", "warnings"]);
    command
}

fn tests(kinds: &[&str]) -> Command {
    let mut command = cargo_with(&["test", "--workspace", "--no-fail-fast"]);
    // A golden that differs fails; it is never written by the test run.
    command.args(kinds).env("INSTA_UPDATE", "no");
    command
}

fn rustdoc() -> Command {
    let mut command = cargo_with(&["doc", "--workspace", "--no-deps", "--quiet", "--keep-going"]);
    command
        .args(["--document-private-items", "--all-features"])
        .env("RUSTDOCFLAGS", "-D warnings");
    command
}

/// Most of these tests wait for something that takes its time.
fn controlplanes() -> (Tally, String) {
    let versions = ["newest", "oldest"].map(|version| {
        let arguments = ["controlplane", "--version", version, "test"];
        std::thread::spawn(move || runner(xtask(&arguments)))
    });
    let panicked = |_| (Tally::gate(false), "this step panicked\n".to_owned());
    let mut ended = versions.map(|version| version.join().unwrap_or_else(panicked));
    // Only the end of the outputs is shown.
    ended.sort_by_key(|(tally, _)| tally.failed);
    let mut total = Tally::default();
    let mut outputs = String::new();
    for (tally, output) in ended {
        total.add(tally);
        outputs.push_str(&output);
    }
    (total, outputs)
}

/// One gate for each package: features and dependencies that only a neighbour asks for do not help it here.
fn alone() -> (Tally, String) {
    let packages = match cargo::packages() {
        Ok(packages) => packages,
        Err(error) => return (Tally::gate(false), format!("{error:#}\n")),
    };
    let mut total = Tally::default();
    let mut outputs = String::new();
    for name in &packages {
        let (tally, output) = gate(cargo_with(&["check", "--quiet", "--package", name]));
        if tally.failed > 0 {
            outputs.extend([name, " does not build alone:\n", &output]);
        }
        total.add(tally);
    }
    (total, outputs)
}
