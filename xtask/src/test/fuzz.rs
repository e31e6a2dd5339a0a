//! Every fuzz target of the tree, for a minute each, with the stable compiler.
//!
//! What `cargo fuzz` adds is the compiler's flags: they are here, so that nothing has to be installed.
//! `libfuzzer-sys` builds the fuzzer itself with the machine's C++ compiler.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, ensure};
use serde::Deserialize;

use super::run::{Finished, run};
use super::step_result::StepResult;
use super::tally::Tally;
use testbed::{cargo, paths};

/// How long each target runs.
const SECONDS: u32 = 60;

/// What an input may take: in seconds, and in MiB.
const LIMITS: [&str; 2] = ["-timeout=20", "-rss_limit_mb=2048"];

/// Counters at every edge and the operands of comparisons, which libFuzzer reads, and our assertions.
///
/// Without a sanitizer, which only a nightly compiler has: the sources have no `unsafe`.
const FLAGS: [&str; 10] = [
    "--cfg=fuzzing",
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    "-Ccodegen-units=1",
    "-Cdebug-assertions",
    "-Coverflow-checks",
    // Without this the linker may drop the tables that the counters belong to.
    "-Clink-dead-code",
];

/// A crate of fuzz targets: `crates/NAME/fuzz`.
struct Crate {
    folder: PathBuf,
    targets: Vec<Target>,
}

/// What cargo says of one.
#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    targets: Vec<Target>,
    metadata: Option<Inputs>,
}

/// `[package.metadata]`: for a target, folders with more inputs than those in `seeds`.
#[derive(Deserialize)]
struct Inputs {
    #[serde(default)]
    inputs: BTreeMap<String, Vec<PathBuf>>,
}

#[derive(Deserialize, Clone)]
struct Target {
    name: String,
    kind: Vec<String>,
    /// Folders with inputs, in the crate that is fuzzed.
    #[serde(default)]
    more: Vec<PathBuf>,
}

/// Builds and runs every target; each is one test.
pub(super) fn all() -> StepResult {
    let crates = match crates() {
        Ok(crates) => crates,
        Err(error) => return StepResult::gate(false, format!("{error:#}\n")),
    };
    let mut total = Tally::default();
    let mut outputs = String::new();
    for fuzzed in &crates {
        let built = build(&fuzzed.folder);
        if !built.success {
            total.add(Tally::gate(false));
            outputs.push_str(&built.output);
            continue;
        }
        for target in &fuzzed.targets {
            let (tally, output) = fuzz(fuzzed, target);
            total.add(tally);
            outputs.push_str(&output);
        }
    }
    if total == Tally::default() {
        return StepResult::gate(false, "there is no fuzz target\n".to_owned());
    }
    StepResult::of(total, outputs)
}

/// Every folder `crates/*/fuzz` with the targets that it has.
fn crates() -> anyhow::Result<Vec<Crate>> {
    let mut folders = Vec::new();
    for entry in std::fs::read_dir(paths::root().join("crates"))? {
        let folder = entry?.path().join("fuzz");
        if folder.join("Cargo.toml").exists() {
            folders.push(folder);
        }
    }
    folders.sort();
    folders.into_iter().map(read).collect()
}

fn read(folder: PathBuf) -> anyhow::Result<Crate> {
    let json = cargo::metadata(&folder.join("Cargo.toml"))?;
    let metadata: Metadata = serde_json::from_slice(&json)?;
    let package = metadata.packages.into_iter().next();
    let package = package.with_context(|| format!("{} has no package", folder.display()))?;
    let targets = targets(&package);
    ensure!(
        !targets.is_empty(),
        "{} has no fuzz target",
        folder.display()
    );
    Ok(Crate { folder, targets })
}

fn targets(package: &Package) -> Vec<Target> {
    let is_binary = |target: &&Target| target.kind.iter().any(|kind| kind == "bin");
    let with_inputs = |target: &Target| {
        let inputs = package.metadata.as_ref();
        let more = inputs.and_then(|metadata| metadata.inputs.get(&target.name));
        Target {
            more: more.cloned().unwrap_or_default(),
            ..target.clone()
        }
    };
    let binaries = package.targets.iter().filter(is_binary);
    binaries.map(with_inputs).collect()
}

/// Objects of their own: nothing else is built with these flags.
fn objects() -> PathBuf {
    paths::root().join("target/fuzz")
}

fn build(folder: &Path) -> Finished {
    let mut command = cargo::command();
    command
        .args(["build", "--release", "--quiet", "--bins"])
        // With a target, build scripts and procedural macros do without the flags.
        .args(["--target", cargo::TARGET])
        .arg("--manifest-path")
        .arg(folder.join("Cargo.toml"))
        .env("CARGO_TARGET_DIR", objects())
        .env("CARGO_ENCODED_RUSTFLAGS", FLAGS.join("\x1f"));
    run(command)
}

/// Runs one target from the inputs in the repository; what it finds on the way is not kept.
fn fuzz(fuzzed: &Crate, target: &Target) -> (Tally, String) {
    let name = &target.name;
    anstream::println!("test:   {name}: {SECONDS} s");
    let work = objects().join("work").join(name);
    let found = work.join("found");
    // From an earlier run.
    drop(std::fs::remove_dir_all(&found));
    if let Err(error) = std::fs::create_dir_all(&found) {
        return (
            Tally::gate(false),
            format!("{}: {error}\n", found.display()),
        );
    }
    let program = objects().join(cargo::TARGET).join("release");
    let mut command = Command::new(program.join(name));
    command
        .current_dir(fuzzed.folder.join(".."))
        .arg(&found)
        .args(inputs(fuzzed, target))
        .arg(format!("-max_total_time={SECONDS}"))
        .arg(format!("-artifact_prefix={}/", work.display()))
        .args(LIMITS);
    let Finished { success, output } = run(command);
    let done = output.lines().rev().find(|line| line.starts_with("Done "));
    anstream::println!("test:   {name}: {}", done.unwrap_or("did not end well"));
    // What a minute of fuzzing says is thousands of lines.
    let lines: Vec<&str> = output.lines().collect();
    let end = lines
        .get(lines.len().saturating_sub(60)..)
        .unwrap_or(&lines);
    (
        Tally::gate(success),
        format!("{name}:\n{}\n", end.join("\n")),
    )
}

/// The folders with inputs that are there.
fn inputs(fuzzed: &Crate, target: &Target) -> Vec<PathBuf> {
    let own = ["seeds", "corpus"].map(|folder| fuzzed.folder.join(folder).join(&target.name));
    let more = target.more.iter();
    let more = more.map(|folder| fuzzed.folder.join("..").join(folder));
    own.into_iter()
        .chain(more)
        .filter(|folder| folder.is_dir())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_crate_with_fuzz_targets_is_found_with_its_inputs() {
        let crates = crates().unwrap();
        let mut found = Vec::new();
        for fuzzed in &crates {
            for target in &fuzzed.targets {
                let inputs = inputs(fuzzed, target);
                assert!(!inputs.is_empty(), "{} has no inputs", target.name);
                found.push(target.name.clone());
            }
        }
        for name in [
            "answer",
            "conntrack",
            "decode",
            "draining",
            "gzip",
            "map",
            "nft",
            "owned",
            "proxy_config",
            "route",
            "yaml",
        ] {
            assert!(found.iter().any(|found| found == name), "{found:?}");
        }
    }
}
