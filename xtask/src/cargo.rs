//! Cargo, run for us: building binaries and asking for metadata.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, bail, ensure};
use serde::Deserialize;

use crate::paths;

/// A `cargo` command in the source tree, with the cargo that runs us.
pub(crate) fn command() -> Command {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(program);
    command.current_dir(paths::root());
    command
}

/// One line of `--message-format=json` that names a finished executable.
#[derive(Deserialize)]
struct Message {
    executable: Option<PathBuf>,
    target: Option<MessageTarget>,
}

#[derive(Deserialize)]
struct MessageTarget {
    name: String,
}

/// Builds the binary `ipvs-topo` with the dev profile and returns where it is.
pub(crate) fn build_agent() -> anyhow::Result<PathBuf> {
    let arguments = ["build", "--package", "agent", "--bin", "ipvs-topo"];
    build(&arguments, "ipvs-topo")
}

/// Runs a cargo build and returns the executable of the target called `name`.
///
/// The compiler's messages are part of the error; a build that succeeds is silent.
pub(crate) fn build(arguments: &[&str], name: &str) -> anyhow::Result<PathBuf> {
    let output = command()
        .args(arguments)
        .args(["--quiet", "--message-format=json-render-diagnostics"])
        .output()
        .context("running cargo")?;
    ensure!(
        output.status.success(),
        "cargo {} failed:\n{}",
        arguments.join(" "),
        String::from_utf8_lossy(&output.stderr)
    );
    let executable = String::from_utf8_lossy(&output.stdout)
        .lines()
        .filter_map(|line| serde_json::from_str::<Message>(line).ok())
        .filter(|message| message.target.as_ref().is_some_and(|t| t.name == name))
        .find_map(|message| message.executable);
    match executable {
        Some(path) => Ok(path),
        None => bail!("cargo {} built no executable {name}", arguments.join(" ")),
    }
}

/// `cargo metadata --no-deps` of one workspace, as JSON.
pub(crate) fn metadata(manifest: &Path) -> anyhow::Result<Vec<u8>> {
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
    #[serde(default, rename = "required-features")]
    required_features: Vec<String>,
}

/// A test target and the package it is of.
pub(crate) struct TestTarget {
    /// The package's name.
    pub(crate) package: String,
    /// The target's name.
    pub(crate) name: String,
}

/// The names of the workspace's packages.
pub(crate) fn packages() -> anyhow::Result<Vec<String>> {
    let packages = workspace()?.packages.into_iter();
    Ok(packages.map(|package| package.name).collect())
}

/// Every test target of the workspace with `required-features` naming `feature`.
pub(crate) fn targets_with(feature: &str) -> anyhow::Result<Vec<TestTarget>> {
    let mut found = Vec::new();
    for package in workspace()?.packages {
        for target in package.targets {
            if target.required_features.iter().any(|name| name == feature) {
                found.push(TestTarget {
                    package: package.name.clone(),
                    name: target.name,
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
