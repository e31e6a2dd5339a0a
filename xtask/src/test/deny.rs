//! cargo-deny: licences, banned crates and sources, and advisories where the database can be had.

use std::path::PathBuf;
use std::process::Command;

use super::run::{Finished, run};
use super::steps::Outcome;
use super::tally::Tally;
use crate::{cargo, paths};

/// The version installed when none is there. Same minor version: same meaning of `deny.toml`.
const VERSION: &str = "^0.20";

/// Licences, bans and sources: one gate.
pub(super) fn check() -> Outcome {
    let finished = match program() {
        Ok(program) => deny(&program, &["bans", "licenses", "sources"]),
        Err(finished) => finished,
    };
    Outcome::gate(finished.success, finished.output)
}

/// Advisories: one gate where the database can be fetched, else one line that says so.
pub(super) fn advisories() -> Outcome {
    let finished = match program() {
        Ok(program) => deny(&program, &["advisories"]),
        Err(finished) => finished,
    };
    if finished
        .output
        .contains("failed to fetch advisory database")
    {
        anstream::println!(
            "test:   the advisory database cannot be fetched from here, so advisories were not checked"
        );
        return Outcome::of(Tally::default(), String::new());
    }
    Outcome::gate(finished.success, finished.output)
}

fn deny(program: &PathBuf, checks: &[&str]) -> Finished {
    let mut command = Command::new(program);
    command
        .current_dir(paths::root())
        .args(["--log-level", "error", "check"])
        .args(checks);
    run(command)
}

/// Where cargo-deny is, installed into the cache first if it is missing (about a minute on two cores).
fn program() -> Result<PathBuf, Finished> {
    let root = paths::cache().join("tools");
    let program = root.join("bin/cargo-deny");
    if program.exists() {
        return Ok(program);
    }
    anstream::println!("test:   installing cargo-deny into {}", root.display());
    let mut install = cargo::command();
    install
        .args([
            "install",
            "cargo-deny",
            "--locked",
            "--debug",
            "--quiet",
            "--version",
            VERSION,
        ])
        .arg("--root")
        .arg(&root)
        // Its objects are of no use to anybody else.
        .env("CARGO_TARGET_DIR", root.join("build"));
    let finished = run(install);
    // The build folder is large and only the program is wanted; that it stays is no failure.
    let removed = std::fs::remove_dir_all(root.join("build"));
    match (finished.success, removed) {
        (true, _) => Ok(program),
        (false, _) => Err(finished),
    }
}
