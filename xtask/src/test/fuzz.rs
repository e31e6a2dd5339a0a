//! Runs every fuzz target of the tree for a minute, with the stable compiler.
//!
//! `cargo fuzz` only adds compiler flags, which are here, so that nothing must be installed. `libfuzzer-sys` builds the
//! fuzzer itself with the machine's C++ compiler.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, ensure};

use super::run::{CommandResult, run};
use super::step_result::StepResult;
use testbed::TestCounts;
use testbed::cargo::Package;
use testbed::{cargo, paths, tail};

/// How long each target runs.
const SECONDS: u32 = 60;

/// Limits for one input: seconds, and MiB.
const LIMITS: [&str; 2] = ["-timeout=20", "-rss_limit_mb=2048"];

/// Adds counters at every edge and the operands of comparisons for libFuzzer, and enables assertions.
///
/// Sanitizers need a nightly compiler, and the sources have no `unsafe`.
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
    // Without this the linker may drop the tables of the counters.
    "-Clink-dead-code",
];

/// A crate of fuzz targets: `crates/NAME/fuzz`.
struct FuzzCrate {
    folder: PathBuf,
    targets: Vec<FuzzTarget>,
}

/// A fuzz target.
struct FuzzTarget {
    name: String,
    /// Folders with further inputs, in the crate that is fuzzed.
    more: Vec<PathBuf>,
}

/// Builds and runs every target. Each is one test.
pub(super) fn all() -> StepResult {
    let crates = match crates() {
        Ok(crates) => crates,
        Err(error) => return StepResult::gate(false, format!("{error:#}\n")),
    };
    let mut total = TestCounts::default();
    let mut outputs = String::new();
    for fuzzed in &crates {
        let built = build(&fuzzed.folder);
        if !built.success {
            total.add(TestCounts::gate(false));
            outputs.push_str(&built.output);
            continue;
        }
        for target in &fuzzed.targets {
            let (counts, output) = fuzz(fuzzed, target);
            total.add(counts);
            outputs.push_str(&output);
        }
    }
    if total == TestCounts::default() {
        return StepResult::gate(false, "there is no fuzz target\n".to_owned());
    }
    StepResult::of(total, outputs)
}

/// Finds every folder `crates/*/fuzz` with its targets.
fn crates() -> anyhow::Result<Vec<FuzzCrate>> {
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

fn read(folder: PathBuf) -> anyhow::Result<FuzzCrate> {
    let packages = cargo::packages_of(&folder.join("Cargo.toml"))?;
    let package = packages.into_iter().next();
    let package = package.with_context(|| format!("{} has no package", folder.display()))?;
    let targets = targets(package)?;
    ensure!(
        !targets.is_empty(),
        "{} has no fuzz target",
        folder.display()
    );
    Ok(FuzzCrate { folder, targets })
}

/// Returns the programs, with the folders that `package.metadata.inputs` names.
fn targets(package: Package) -> anyhow::Result<Vec<FuzzTarget>> {
    let inputs = package.metadata.get("inputs").cloned();
    let inputs = inputs.map(serde_json::from_value::<BTreeMap<String, Vec<PathBuf>>>);
    let mut inputs = inputs.transpose()?.unwrap_or_default();
    let binaries = package.targets.into_iter();
    let binaries = binaries.filter(|target| target.is_a("bin"));
    let targets = binaries.map(|target| FuzzTarget {
        more: inputs.remove(&target.name).unwrap_or_default(),
        name: target.name,
    });
    Ok(targets.collect())
}

/// Returns a separate target folder: nothing else is built with these flags.
fn objects() -> PathBuf {
    paths::root().join("target/fuzz")
}

fn build(folder: &Path) -> CommandResult {
    let mut command = cargo::command();
    command
        .args(["build", "--release", "--quiet", "--bins", "--locked"])
        // With `--target`, build scripts and procedural macros are built without the flags.
        .args(["--target", cargo::TARGET])
        .arg("--manifest-path")
        .arg(folder.join("Cargo.toml"))
        .env("CARGO_TARGET_DIR", objects())
        .env("CARGO_ENCODED_RUSTFLAGS", FLAGS.join("\x1f"));
    run(command)
}

/// Runs one target from the inputs in the repository. New inputs are not kept.
fn fuzz(fuzzed: &FuzzCrate, target: &FuzzTarget) -> (TestCounts, String) {
    let name = &target.name;
    anstream::println!("test:   {name}: {SECONDS} s");
    let work = objects().join("work").join(name);
    let found = work.join("found");
    // From an earlier run.
    drop(std::fs::remove_dir_all(&found));
    if let Err(error) = std::fs::create_dir_all(&found) {
        return (
            TestCounts::gate(false),
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
    let CommandResult { success, output } = run(command);
    let done = output.lines().rev().find(|line| line.starts_with("Done "));
    anstream::println!("test:   {name}: {}", done.unwrap_or("failed"));
    // A minute of fuzzing prints thousands of lines.
    (
        TestCounts::gate(success),
        format!("{name}:\n{}\n", tail(&output, 60)),
    )
}

/// Returns the existing folders with inputs.
fn inputs(fuzzed: &FuzzCrate, target: &FuzzTarget) -> Vec<PathBuf> {
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
    fn the_lock_files_of_fuzz_crates_are_current() {
        for fuzzed in crates().unwrap() {
            let mut command = cargo::command();
            command
                .args(["update", "--workspace", "--locked", "--quiet"])
                .arg("--manifest-path")
                .arg(fuzzed.folder.join("Cargo.toml"));
            let CommandResult { success, output } = run(command);
            assert!(success, "{output}");
        }
    }

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
            "elements",
            "gzip",
            "map",
            "marks",
            "owned",
            "proxy_config",
            "route",
            "settings",
            "table",
            "yaml",
        ] {
            assert!(found.iter().any(|found| found == name), "{found:?}");
        }
    }
}
