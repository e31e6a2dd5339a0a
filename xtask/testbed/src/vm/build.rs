//! Builds what runs in guests, and finds it among what cargo built.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, bail};
use serde::Deserialize;

use super::image::Addition;
use super::progress::Step;
use crate::{cargo, paths};

/// The feature that marks tests for a real kernel.
const FEATURE: &str = "kernel-tests";

/// How programs are built.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Profile {
    /// Quick to rebuild: tests, demo, shell.
    Guest,
    /// As it is shipped: whatever is measured.
    Release,
}

/// The packages whose programs every guest holds.
const PROGRAMS: [&str; 2] = ["agent", "guest"];

/// Builds the agent and `guest`, and places them in `usr/bin`; the examples beside them.
pub fn programs(profile: Profile) -> anyhow::Result<Vec<Addition>> {
    some_programs(&PROGRAMS, profile)
}

/// The same for the packages `names`.
pub(crate) fn some_programs(names: &[&str], profile: Profile) -> anyhow::Result<Vec<Addition>> {
    let mut cargo = match profile {
        // As images and tests, which then share every library.
        Profile::Guest => cargo::whole_for_guests("build"),
        Profile::Release => release(names),
    };
    for program in cargo::programs(names)? {
        cargo.args(["--bin", &program]);
    }
    built_programs(&mut cargo, names)
}

/// Runs the build `cargo` of the programs of the packages `names`.
fn built_programs(cargo: &mut Command, names: &[&str]) -> anyhow::Result<Vec<Addition>> {
    let step = Step::begin(format!(
        "building what the guest runs: {}",
        names.join(", ")
    ));
    let mut additions: Vec<Addition> = executables(cargo)?
        .into_iter()
        .map(|built| Addition::Program {
            path: format!("usr/bin/{}", built.name),
            from: built.executable,
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

/// Builds the kernel tests of the packages `only` (of all when empty), places them in `tests`,
/// and adds the programs that they need.
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

/// `cargo SUBCOMMAND` for the guests with the packages `names` and what they need, and no others.
fn selected(subcommand: &str, names: &[&str]) -> Command {
    let mut cargo = cargo::command();
    cargo.arg(subcommand);
    cargo::as_for_guests(&mut cargo);
    for name in names {
        // With the feature on, tests and programs are linked with the same libraries.
        let feature = format!("{name}/{FEATURE}");
        cargo.args(["--package", name, "--features", &feature]);
    }
    cargo
}

fn test_binaries(cargo: &mut Command, packages: &[Testable]) -> anyhow::Result<Vec<Addition>> {
    let step = Step::begin("building the kernel tests");
    cargo.arg("--no-run");
    let targets: BTreeSet<&String> = packages.iter().flat_map(|one| &one.tests).collect();
    for target in targets {
        cargo.args(["--test", target]);
    }
    let additions: Vec<Addition> = executables(cargo)?
        .into_iter()
        .filter(|built| built.is_test)
        .map(|built| Addition::Program {
            path: format!("tests/{}", built.test_name()),
            from: built.executable,
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

/// A package with kernel tests.
struct Testable {
    name: String,
    tests: Vec<String>,
}

/// Every package of the workspace that has test targets with `required-features` naming the feature.
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

/// One executable that cargo built.
struct Built {
    package: String,
    name: String,
    is_test: bool,
    executable: PathBuf,
}

impl Built {
    /// `agent` for the target `kernel` of the package `agent`, else `agent.TARGET`.
    fn test_name(&self) -> String {
        if self.name == "kernel" {
            self.package.clone()
        } else {
            format!("{}.{}", self.package, self.name)
        }
    }
}

/// Runs `cargo` and reads from its messages what it built.
fn executables(cargo: &mut Command) -> anyhow::Result<Vec<Built>> {
    #[derive(Deserialize)]
    struct Message {
        executable: Option<PathBuf>,
        manifest_path: Option<PathBuf>,
        target: Option<Target>,
    }
    #[derive(Deserialize)]
    struct Target {
        name: String,
        kind: Vec<String>,
    }
    let done = cargo
        .args(["--message-format", "json-render-diagnostics"])
        .stderr(Stdio::inherit())
        .output()
        .context("cannot start cargo")?;
    if !done.status.success() {
        bail!("the build for the guests failed ({})", done.status);
    }
    let mut built = Vec::new();
    for line in String::from_utf8_lossy(&done.stdout).lines() {
        let message: Message = serde_json::from_str(line).context("cargo's messages changed")?;
        let (Some(executable), Some(manifest), Some(target)) =
            (message.executable, message.manifest_path, message.target)
        else {
            continue;
        };
        built.push(Built {
            package: package_name(&manifest)?,
            is_test: target.kind.iter().any(|kind| kind == "test"),
            name: target.name,
            executable,
        });
    }
    Ok(built)
}

/// The name of the package, which is the name of its folder in this workspace.
fn package_name(manifest: &std::path::Path) -> anyhow::Result<String> {
    let folder = manifest.parent().and_then(|folder| folder.file_name());
    Ok(folder
        .context("a manifest without a folder")?
        .to_string_lossy()
        .into_owned())
}

/// The build of the packages `names` as they are shipped.
fn release(names: &[&str]) -> Command {
    let mut flags = vec![cargo::STATIC.to_owned()];
    flags.extend(same_everywhere());
    let mut cargo = cargo::command();
    cargo
        .args(["build", "--release", "--target", cargo::TARGET, "--locked"])
        // A path in a flag may hold a space.
        .env("CARGO_ENCODED_RUSTFLAGS", flags.join("\x1f"));
    for name in names {
        cargo.args(["--package", name]);
    }
    cargo
}

/// Flags that keep this machine's folders out of what is shipped: the same sources give the same bytes.
fn same_everywhere() -> Vec<String> {
    let home = std::env::var("HOME").unwrap_or_default();
    let cargo = std::env::var("CARGO_HOME").unwrap_or_else(|_| format!("{home}/.cargo"));
    let root = paths::root().display().to_string();
    vec![
        format!("--remap-path-prefix={cargo}=/cargo"),
        format!("--remap-path-prefix={root}=/ipvs-topo"),
    ]
}
