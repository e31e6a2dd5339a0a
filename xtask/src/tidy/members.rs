//! The packages of the tree: their targets and what they depend on, as cargo sees them.

use std::path::Path;

use anyhow::Context as _;
use serde::Deserialize;

use super::tree::Tree;
use testbed::cargo;

/// One package.
#[derive(Debug, Clone, Default)]
pub(super) struct Member {
    pub(super) name: String,
    /// The folder of its manifest, from the root of the tree.
    pub(super) folder: String,
    pub(super) targets: Vec<CargoTarget>,
    pub(super) dependencies: Vec<Dependency>,
}

/// One crate that cargo builds from a package.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct CargoTarget {
    pub(super) name: String,
    /// `lib`, `bin`, `test`, `bench`, `example`, `custom-build` ...
    pub(super) kind: Vec<String>,
    /// The root file; absolute as cargo prints it, from the root of the tree in a `Member`.
    pub(super) src_path: String,
}

/// One line of a manifest's dependency tables.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Dependency {
    pub(super) name: String,
    /// `dev`, `build`, or nothing for an ordinary one.
    pub(super) kind: Option<String>,
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    manifest_path: String,
    targets: Vec<CargoTarget>,
    dependencies: Vec<Dependency>,
}

/// Reads the members of the workspace, and the packages beside it (a fuzz crate is its own workspace).
pub(super) fn read(root: &Path, tree: &Tree) -> anyhow::Result<Vec<Member>> {
    let mut members = read_one(root, "Cargo.toml")?;
    for (path, _) in tree.with_extension("toml") {
        let folder = path.strip_suffix("/Cargo.toml");
        let unknown = |folder: &str| members.iter().all(|member| member.folder != folder);
        if folder.is_some_and(unknown) {
            let outside = read_one(root, path)?;
            members.extend(outside);
        }
    }
    Ok(members)
}

fn read_one(root: &Path, manifest: &str) -> anyhow::Result<Vec<Member>> {
    let json = cargo::metadata(&root.join(manifest))?;
    let metadata: Metadata =
        serde_json::from_slice(&json).context("reading the JSON of cargo metadata")?;
    Ok(metadata
        .packages
        .into_iter()
        .map(|package| from_package(root, package))
        .collect())
}

fn from_package(root: &Path, package: Package) -> Member {
    let relative = |path: &str| {
        let path = Path::new(path);
        let path = path.strip_prefix(root).unwrap_or(path);
        path.to_string_lossy().into_owned()
    };
    let manifest = relative(&package.manifest_path);
    let targets = package.targets.into_iter().map(|target| CargoTarget {
        src_path: relative(&target.src_path),
        ..target
    });
    Member {
        name: package.name,
        folder: manifest.trim_end_matches("/Cargo.toml").to_owned(),
        targets: targets.collect(),
        dependencies: package.dependencies,
    }
}
