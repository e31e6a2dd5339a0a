//! Cargo, run for us: building binaries and asking for metadata.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, bail, ensure};
use serde::Deserialize;

use crate::paths;

/// A `cargo` command in the source tree, with the cargo that runs us.
pub fn command() -> Command {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(program);
    // With this set, which test binaries get for the times of their tests, cargo builds everything again.
    command.current_dir(paths::root()).env_remove(REPORTS_TIME);
    // What `cargo xtask` says of this package. The build script of `ring` depends on it, so that a build from here
    // and one from a shell would each undo the other's.
    for (name, _) in std::env::vars_os() {
        if name.to_str().is_some_and(is_of_a_package) {
            command.env_remove(name);
        }
    }
    command
}

/// Whether cargo sets a variable of this name for the program of a package that it runs.
fn is_of_a_package(name: &str) -> bool {
    name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_")
}

/// The variable with which libtest of a stable toolchain takes `--report-time`.
pub const REPORTS_TIME: &str = "RUSTC_BOOTSTRAP";

/// What our programs are built for; with glibc and `crt-static`, because it is there wherever Rust is.
pub const TARGET: &str = "x86_64-unknown-linux-gnu";

/// `cargo SUBCOMMAND` over the whole workspace with every feature.
///
/// What a command selects decides which features the dependencies get, and every other set of
/// features builds a hundred crates once more.
pub fn whole(subcommand: &str) -> Command {
    let mut command = command();
    command.args([subcommand, "--workspace", "--all-features"]);
    command
}

/// The same for what runs in guests and images.
pub(crate) fn whole_for_guests(subcommand: &str) -> Command {
    let mut command = whole(subcommand);
    as_for_guests(&mut command);
    command
}

/// Lets a build be static, so that a guest needs none of the host's libraries, and optimised a little.
pub(crate) fn as_for_guests(command: &mut Command) {
    command
        .args(["--profile", "guest", "--target", TARGET, "--locked"])
        .env("CARGO_ENCODED_RUSTFLAGS", STATIC);
}

/// The flags for programs without libraries, as `CARGO_ENCODED_RUSTFLAGS` has them.
pub(crate) const STATIC: &str = "-C\u{1f}target-feature=+crt-static";

/// One line of `--message-format=json` that names a finished executable.
#[derive(Deserialize)]
struct Message {
    executable: Option<PathBuf>,
    target: Option<MessageTarget>,
}

#[derive(Deserialize)]
struct MessageTarget {
    name: String,
    src_path: PathBuf,
}

/// Builds the binary `ipvs-topo` with the dev profile and returns where it is.
pub fn build_agent() -> anyhow::Result<PathBuf> {
    build(whole("build").args(["--bin", "ipvs-topo"]), "ipvs-topo")
}

/// Runs a cargo build and returns the executable of the target called `name`.
///
/// The compiler's messages are part of the error; a build that succeeds is silent.
pub fn build(cargo: &mut Command, name: &str) -> anyhow::Result<PathBuf> {
    match &*build_all(cargo, &|target| target.name == name)? {
        [path, ..] => Ok(path.clone()),
        [] => bail!("cargo built no executable {name}"),
    }
}

/// The executables of a build of the test targets that `wanted` names.
pub(crate) fn build_tests(wanted: &[TestTarget]) -> anyhow::Result<Vec<PathBuf>> {
    let mut cargo = whole("test");
    cargo.arg("--no-run");
    let names: BTreeSet<&str> = wanted.iter().map(|target| &*target.name).collect();
    for name in names {
        cargo.args(["--test", name]);
    }
    // Targets of other packages may have the same name.
    let sources: Vec<&Path> = wanted.iter().map(|target| &*target.source).collect();
    build_all(&mut cargo, &|target| sources.contains(&&*target.src_path))
}

fn build_all(
    cargo: &mut Command,
    is_wanted: &dyn Fn(&MessageTarget) -> bool,
) -> anyhow::Result<Vec<PathBuf>> {
    let output = cargo
        .args(["--quiet", "--message-format=json-render-diagnostics"])
        .output()
        .context("running cargo")?;
    ensure!(
        output.status.success(),
        "{cargo:?} failed:\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let messages = String::from_utf8_lossy(&output.stdout);
    let messages = messages
        .lines()
        .filter_map(|line| serde_json::from_str::<Message>(line).ok())
        .filter(|message| message.target.as_ref().is_some_and(is_wanted));
    Ok(messages.filter_map(|message| message.executable).collect())
}

/// `cargo metadata --no-deps` of one workspace, as JSON.
pub fn metadata(manifest: &Path) -> anyhow::Result<Vec<u8>> {
    let output = command()
        .args(["metadata", "--no-deps", "--format-version", "1"])
        .arg("--manifest-path")
        .arg(manifest)
        .output()
        .context("running cargo metadata")?;
    ensure!(
        output.status.success(),
        "cargo metadata failed: {}",
        String::from_utf8_lossy(&output.stderr).trim()
    );
    Ok(output.stdout)
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    targets: Vec<Target>,
}

#[derive(Deserialize)]
struct Target {
    name: String,
    kind: Vec<String>,
    src_path: PathBuf,
    #[serde(default, rename = "required-features")]
    required_features: Vec<String>,
}

/// A test target and the package it is of.
pub(crate) struct TestTarget {
    /// The package's name.
    pub(crate) package: String,
    /// The target's name.
    pub(crate) name: String,
    /// Its root file.
    source: PathBuf,
}

/// The names of the programs of the packages `names`.
pub(crate) fn programs(names: &[&str]) -> anyhow::Result<Vec<String>> {
    let mut programs = Vec::new();
    for package in workspace()?.packages {
        if names.contains(&&*package.name) {
            let targets = package.targets.into_iter();
            let is_program = |target: &Target| target.kind.iter().any(|kind| kind == "bin");
            programs.extend(targets.filter(is_program).map(|target| target.name));
        }
    }
    Ok(programs)
}

/// The names of the workspace's packages.
pub fn packages() -> anyhow::Result<Vec<String>> {
    let packages = workspace()?.packages.into_iter();
    Ok(packages.map(|package| package.name).collect())
}

/// Every test target of the workspace with `required-features` naming `feature`.
pub(crate) fn targets_with(feature: &str) -> anyhow::Result<Vec<TestTarget>> {
    test_targets(&|required| required.iter().any(|name| name == feature))
}

/// The names of the test targets that need nothing but this machine.
pub fn plain_targets() -> anyhow::Result<BTreeSet<String>> {
    let found = test_targets(&<[String]>::is_empty)?.into_iter();
    Ok(found.map(|target| target.name).collect())
}

fn test_targets(is_wanted: &dyn Fn(&[String]) -> bool) -> anyhow::Result<Vec<TestTarget>> {
    let mut found = Vec::new();
    for package in workspace()?.packages {
        for target in package.targets {
            let is_test = target.kind.iter().any(|kind| kind == "test");
            if is_test && is_wanted(&target.required_features) {
                found.push(TestTarget {
                    package: package.name.clone(),
                    name: target.name,
                    source: target.src_path,
                });
            }
        }
    }
    Ok(found)
}

fn workspace() -> anyhow::Result<Metadata> {
    let json = metadata(&paths::root().join("Cargo.toml"))?;
    serde_json::from_slice(&json).context("reading cargo metadata")
}
