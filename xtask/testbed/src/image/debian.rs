//! Adds programs of Debian packages and the libraries that they are linked with to an image, and nothing else of them.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::Context as _;

use super::component::Component;
use super::contents::Contents;
use crate::vm::archive::{InstalledPackage, installed_packages};
use crate::vm::tools::Tools;

/// Adds `programs` of `tools`, their libraries, their licences, and the names of their packages.
pub(super) fn add(contents: &mut Contents, tools: &Tools, programs: &[&str]) -> anyhow::Result<()> {
    let mut files = vec![("usr/lib", tools.loader()?)];
    for name in programs {
        let program = tools.program(name)?;
        let libraries = tools.libraries(&program)?.into_iter();
        files.extend(libraries.map(|library| ("usr/lib", library)));
        files.push(("usr/bin", program));
    }
    let all = installed_packages(tools.root())?;
    let mut packages = BTreeSet::new();
    for (folder, file) in &files {
        let name = file.file_name().context("a file without a name")?;
        let path = format!("{folder}/{}", name.to_string_lossy());
        contents.program(&path, fs::read(file)?);
        packages.insert(owner_of(tools.root(), file, &all)?);
    }
    // Programs name the loader by its usual path, and the loader searches the usual folders.
    for (path, target) in [("lib", "usr/lib"), ("lib64", "usr/lib")] {
        contents.link(path, target);
    }
    for package in packages {
        let copyright = format!("usr/share/doc/{}/copyright", package.name);
        contents.text(&copyright, fs::read(tools.file(&copyright))?);
        contents.components.push(component(package));
    }
    Ok(())
}

fn component(package: &InstalledPackage) -> Component {
    let InstalledPackage { name, version, .. } = package;
    Component {
        name: name.clone(),
        version: version.clone(),
        url: format!("pkg:deb/debian/{name}@{version}?arch=amd64"),
        licence: None,
    }
}

/// Returns the package of `file`; follows links.
fn owner_of<'a>(
    root: &Path,
    file: &Path,
    all: &'a [InstalledPackage],
) -> anyhow::Result<&'a InstalledPackage> {
    let real = file.canonicalize()?;
    let real = real.strip_prefix(root.canonicalize()?)?;
    let path = real.to_string_lossy();
    let owner = all.iter().find(|owner| owner.files.contains(&*path));
    owner.with_context(|| format!("no package brought {path}"))
}
