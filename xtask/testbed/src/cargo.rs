//! Runs cargo: builds binaries and reads metadata.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, ensure};
use serde::Deserialize;

use crate::paths;

/// Returns a `cargo` command in the source tree, with the cargo that runs this program.
pub fn command() -> Command {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(program);
    // Test binaries get this variable to report times. With it, cargo would build everything again.
    command.current_dir(paths::root()).env_remove(REPORTS_TIME);
    // `cargo xtask` sets these for this package. The build script of `ring` depends on them, so builds from here and
    // from a shell would each invalidate the other.
    for (name, _) in std::env::vars_os() {
        if name.to_str().is_some_and(is_of_a_package) {
            command.env_remove(name);
        }
    }
    command
}

/// Returns whether cargo sets a variable of this name when it runs the program of a package.
fn is_of_a_package(name: &str) -> bool {
    name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_")
}

/// With this variable, libtest of a stable toolchain accepts `--report-time`.
pub const REPORTS_TIME: &str = "RUSTC_BOOTSTRAP";

/// The target of our programs: glibc with `crt-static`, because every Rust toolchain has it.
pub const TARGET: &str = "x86_64-unknown-linux-gnu";

/// Returns `cargo SUBCOMMAND` for the whole workspace with every feature.
///
/// The selected packages decide which features the dependencies get. Every other set of features builds a hundred
/// crates once more.
pub fn whole(subcommand: &str) -> Command {
    let mut command = command();
    command.args([subcommand, "--workspace", "--all-features"]);
    command
}

/// Returns the same command for programs that run in guests and images.
pub(crate) fn whole_for_guests(subcommand: &str) -> Command {
    let mut command = whole(subcommand);
    as_for_guests(&mut command);
    command
}

/// Makes a build static, so that a guest needs none of the host's libraries, and slightly optimised.
pub(crate) fn as_for_guests(command: &mut Command) {
    command
        .args(["--profile", "guest", "--target", TARGET, "--locked"])
        .env("CARGO_ENCODED_RUSTFLAGS", STATIC);
}

/// The flags for static programs in the format of `CARGO_ENCODED_RUSTFLAGS`.
pub(crate) const STATIC: &str = "-C\u{1f}target-feature=+crt-static";

/// One line of `--message-format=json`.
#[derive(Deserialize)]
struct Message {
    executable: Option<PathBuf>,
    manifest_path: Option<PathBuf>,
    target: Option<Target>,
}

/// An executable that cargo built.
pub(crate) struct Executable {
    pub(crate) path: PathBuf,
    /// The name of its package, which is the name of its folder in this workspace.
    pub(crate) package: String,
    pub(crate) target: Target,
}

impl Executable {
    fn new(message: Message) -> Option<Self> {
        let manifest = message.manifest_path?;
        let folder = manifest.parent()?.file_name()?;
        Some(Self {
            path: message.executable?,
            package: folder.to_string_lossy().into_owned(),
            target: message.target?,
        })
    }
}

/// Builds the binary `ipvs-topo` with the dev profile and returns its path.
pub fn build_agent() -> anyhow::Result<PathBuf> {
    build(whole("build").args(["--bin", "ipvs-topo"]), "ipvs-topo")
}

/// Runs a cargo build and returns the executable of the target called `name`.
///
/// The compiler's messages are part of the error; a build that succeeds is silent.
pub fn build(cargo: &mut Command, name: &str) -> anyhow::Result<PathBuf> {
    let built = executables(cargo.arg("--quiet"))?.into_iter();
    let mut built = built.filter(|built| built.target.name == name);
    let built = built.next();
    Ok(built
        .with_context(|| format!("cargo built no executable {name}"))?
        .path)
}

/// Builds the test targets `wanted` and returns their executables.
pub(crate) fn build_tests(wanted: &[TestTarget]) -> anyhow::Result<Vec<PathBuf>> {
    let mut cargo = whole("test");
    cargo.arg("--no-run");
    let names: BTreeSet<&str> = wanted.iter().map(|target| &*target.name).collect();
    for name in names {
        cargo.args(["--test", name]);
    }
    // Targets of other packages may have the same name.
    let sources: Vec<&Path> = wanted.iter().map(|target| &*target.source).collect();
    let built = executables(cargo.arg("--quiet"))?.into_iter();
    let built = built.filter(|built| sources.contains(&&*built.target.src_path));
    Ok(built.map(|built| built.path).collect())
}

/// Runs a cargo build and returns the executables. The error contains standard error, unless that is inherited.
pub(crate) fn executables(cargo: &mut Command) -> anyhow::Result<Vec<Executable>> {
    let output = cargo
        .arg("--message-format=json-render-diagnostics")
        .output()
        .context("running cargo")?;
    ensure!(
        output.status.success(),
        "{cargo:?} failed:\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let messages = String::from_utf8_lossy(&output.stdout);
    let messages = messages.lines().map(serde_json::from_str::<Message>);
    Ok(messages
        .filter_map(|message| Executable::new(message.ok()?))
        .collect())
}

/// Returns the JSON of `cargo metadata --no-deps` for one workspace.
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

/// A package in the output of `cargo metadata`.
#[derive(Deserialize)]
pub struct Package {
    pub name: String,
    pub targets: Vec<Target>,
    /// The table `package.metadata`.
    #[serde(default)]
    pub metadata: serde_json::Value,
}

/// A target of a package.
#[derive(Deserialize)]
pub struct Target {
    pub name: String,
    pub kind: Vec<String>,
    pub src_path: PathBuf,
    #[serde(default, rename = "required-features")]
    pub required_features: Vec<String>,
}

impl Target {
    pub fn is_a(&self, kind: &str) -> bool {
        self.kind.iter().any(|known| known == kind)
    }
}

/// A test target and its package.
pub(crate) struct TestTarget {
    pub(crate) package: String,
    pub(crate) name: String,
    /// Its root file.
    source: PathBuf,
}

/// Returns the names of the programs of the packages `names`.
pub(crate) fn programs(names: &[&str]) -> anyhow::Result<Vec<String>> {
    let mut programs = Vec::new();
    for package in workspace()? {
        if names.contains(&&*package.name) {
            let targets = package.targets.into_iter();
            let programs_of = targets.filter(|target| target.is_a("bin"));
            programs.extend(programs_of.map(|target| target.name));
        }
    }
    Ok(programs)
}

/// Returns the names of the workspace's packages.
pub fn packages() -> anyhow::Result<Vec<String>> {
    let packages = workspace()?.into_iter();
    Ok(packages.map(|package| package.name).collect())
}

/// Returns every test target of the workspace whose `required-features` name `feature`.
pub(crate) fn targets_with(feature: &str) -> anyhow::Result<Vec<TestTarget>> {
    test_targets(&|required| required.iter().any(|name| name == feature))
}

/// Returns the names of the test targets without `required-features`, which need only this machine.
pub fn plain_targets() -> anyhow::Result<BTreeSet<String>> {
    let found = test_targets(&<[String]>::is_empty)?.into_iter();
    Ok(found.map(|target| target.name).collect())
}

fn test_targets(is_wanted: &dyn Fn(&[String]) -> bool) -> anyhow::Result<Vec<TestTarget>> {
    let mut found = Vec::new();
    for package in workspace()? {
        for target in package.targets {
            if target.is_a("test") && is_wanted(&target.required_features) {
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

fn workspace() -> anyhow::Result<Vec<Package>> {
    packages_of(&paths::root().join("Cargo.toml"))
}

/// Reads the packages of the workspace of a manifest.
pub fn packages_of(manifest: &Path) -> anyhow::Result<Vec<Package>> {
    let json = metadata(manifest)?;
    let metadata: Metadata = serde_json::from_slice(&json).context("reading cargo metadata")?;
    Ok(metadata.packages)
}
