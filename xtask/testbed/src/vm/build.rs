//! Builds the programs and tests that run in guests.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, bail};

use super::image::Addition;
use super::progress::ProgressLine;
use crate::cargo::Executable;
use crate::{cargo, paths};

/// The feature that marks tests for a real kernel.
const FEATURE: &str = "kernel-tests";

/// The build profile of programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Profile {
    /// Fast to build: for tests, demo and shell.
    Guest,
    /// As shipped: for measurements.
    Release,
}

/// The packages whose programs are in every guest.
const PROGRAMS: [&str; 2] = ["cli", "guest"];

/// Builds the agent and `guest` for `usr/bin`, and adds the examples.
pub fn programs(profile: Profile) -> anyhow::Result<Vec<Addition>> {
    some_programs(&PROGRAMS, profile)
}

/// Returns the file on this machine of the program that a guest has at `path`.
pub fn program<'a>(programs: &'a [Addition], path: &str) -> Option<&'a Path> {
    programs.iter().find_map(|addition| match addition {
        Addition::Program { path: to, from } if to == path => Some(from.as_path()),
        _ => None,
    })
}

/// Builds the programs of the packages `names`.
pub(crate) fn some_programs(names: &[&str], profile: Profile) -> anyhow::Result<Vec<Addition>> {
    let mut cargo = match profile {
        // The same features as images and tests, which then share every library.
        Profile::Guest => cargo::whole_for_guests("build"),
        Profile::Release => release(names),
    };
    for program in cargo::programs(names)? {
        cargo.args(["--bin", &program]);
    }
    built_programs(&mut cargo, names)
}

/// Runs `cargo`, which builds the programs of the packages `names`.
fn built_programs(cargo: &mut Command, names: &[&str]) -> anyhow::Result<Vec<Addition>> {
    let step = ProgressLine::begin(format!(
        "building what the guest runs: {}",
        names.join(", ")
    ));
    let mut additions: Vec<Addition> = executables(cargo)?
        .into_iter()
        .map(|built| Addition::Program {
            path: format!("usr/bin/{}", built.target.name),
            from: built.path,
        })
        .collect();
    let (built, wanted) = (additions.len(), names.len());
    if built < wanted {
        bail!("cargo built {built} programs instead of {wanted}");
    }
    additions.push(Addition::Tree {
        path: "examples".to_owned(),
        from: paths::root().join("manifests/examples"),
    });
    step.done("");
    Ok(additions)
}

/// Builds the kernel tests of the packages `only` (of all packages if it is empty) for `tests`, and adds the programs
/// that they need.
pub(crate) fn tests(only: &[String]) -> anyhow::Result<Vec<Addition>> {
    let mut packages = testable_packages()?;
    for name in only {
        if !packages.iter().any(|package| package.name == *name) {
            bail!("the package {name} has no test target that requires the feature {FEATURE}");
        }
    }
    packages.retain(|package| only.is_empty() || only.contains(&package.name));
    let needed = |name: &&str| *name == "guest" || packages.iter().any(|p| p.name == *name);
    let needed: Vec<&str> = PROGRAMS.into_iter().filter(needed).collect();
    if only.is_empty() {
        let mut additions = some_programs(&needed, Profile::Guest)?;
        additions.extend(test_binaries(
            &mut cargo::whole_for_guests("test"),
            &packages,
        )?);
        return Ok(additions);
    }
    let mut additions = built_programs(&mut selected("build", &needed), &needed)?;
    let names: Vec<&str> = packages.iter().map(|package| &*package.name).collect();
    additions.extend(test_binaries(&mut selected("test", &names), &packages)?);
    Ok(additions)
}

/// Returns `cargo SUBCOMMAND` for the guests with only the packages `names` and their dependencies.
fn selected(subcommand: &str, names: &[&str]) -> Command {
    let mut cargo = cargo::command();
    cargo.arg(subcommand);
    cargo::as_for_guests(&mut cargo);
    for name in names {
        // With the feature, tests and programs link the same libraries.
        let feature = format!("{name}/{FEATURE}");
        cargo.args(["--package", name, "--features", &feature]);
    }
    cargo
}

fn test_binaries(cargo: &mut Command, packages: &[Testable]) -> anyhow::Result<Vec<Addition>> {
    let step = ProgressLine::begin("building the kernel tests");
    cargo.arg("--no-run");
    let targets: BTreeSet<&String> = packages.iter().flat_map(|one| &one.tests).collect();
    for target in targets {
        cargo.args(["--test", target]);
    }
    let additions: Vec<Addition> = executables(cargo)?
        .into_iter()
        .filter(|built| built.target.is_a("test"))
        .map(|built| Addition::Program {
            path: format!("tests/{}", test_name(&built)),
            from: built.path,
        })
        .collect();
    let wanted: usize = packages.iter().map(|package| package.tests.len()).sum();
    if additions.len() != wanted {
        bail!(
            "cargo built {} test binaries instead of {wanted}",
            additions.len()
        );
    }
    step.done(&format!("({wanted} binaries)"));
    Ok(additions)
}

struct Testable {
    name: String,
    tests: Vec<String>,
}

/// Lists the packages with test targets whose `required-features` name the feature.
fn testable_packages() -> anyhow::Result<Vec<Testable>> {
    let mut packages: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for target in cargo::targets_with(FEATURE)? {
        packages
            .entry(target.package)
            .or_default()
            .push(target.name);
    }
    let packages = packages.into_iter();
    Ok(packages
        .map(|(name, tests)| Testable { name, tests })
        .collect())
}

/// Returns `cli` for the target `kernel` of the package `cli`, else `cli.TARGET`.
fn test_name(built: &Executable) -> String {
    if built.target.name == "kernel" {
        built.package.clone()
    } else {
        format!("{}.{}", built.package, built.target.name)
    }
}

/// Runs `cargo` with its messages on this terminal.
fn executables(cargo: &mut Command) -> anyhow::Result<Vec<Executable>> {
    cargo::executables(cargo.stderr(Stdio::inherit())).context("the build for the guests failed")
}

/// Returns the release build of the packages `names`.
fn release(names: &[&str]) -> Command {
    let mut flags = vec![cargo::STATIC.to_owned()];
    flags.extend(same_everywhere());
    let mut cargo = cargo::command();
    cargo
        .args(["build", "--release", "--target", cargo::TARGET, "--locked"])
        // A path in a flag may contain a space.
        .env("CARGO_ENCODED_RUSTFLAGS", flags.join("\x1f"));
    for name in names {
        cargo.args(["--package", name]);
    }
    cargo
}

/// Returns flags that remove this machine's folders from binaries, so that the same sources give the same bytes.
fn same_everywhere() -> Vec<String> {
    let home = std::env::var("HOME").unwrap_or_default();
    let cargo = std::env::var("CARGO_HOME").unwrap_or_else(|_| format!("{home}/.cargo"));
    let root = paths::root().display().to_string();
    vec![
        format!("--remap-path-prefix={cargo}=/cargo"),
        format!("--remap-path-prefix={root}=/ipvs-topo"),
    ]
}
