//! `nft` for the agent's image: the program, the libraries that it is linked with, and nothing else of Debian.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::Context as _;

use super::component::Component;
use super::contents::Contents;
use crate::vm::Machines;
use crate::vm::archive::{Owner, owners};
use crate::vm::tools::{SUITE, Tools};

/// Adds `nft` with all it needs, the licences of that, and the packages it is from.
pub(super) fn add(contents: &mut Contents, lab: &Machines) -> anyhow::Result<()> {
    let tools = Tools::of(&lab.store, "image-nftables", SUITE, &["nftables"])?;
    let program = tools.program("nft")?;
    let mut files = vec![program.clone(), tools.loader()?];
    files.extend(tools.libraries(&program)?);
    let all = owners(tools.root())?;
    let mut packages = BTreeSet::new();
    for file in &files {
        let name = file.file_name().context("a file without a name")?;
        let folder = if *file == program {
            "usr/bin"
        } else {
            "usr/lib"
        };
        let path = format!("{folder}/{}", name.to_string_lossy());
        contents.program(&path, fs::read(file)?);
        packages.insert(owner_of(tools.root(), file, &all)?);
    }
    // The loader is called by its customary path, and looks in the customary folders.
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

fn component(package: &Owner) -> Component {
    let Owner { name, version, .. } = package;
    Component {
        name: name.clone(),
        version: version.clone(),
        url: format!("pkg:deb/debian/{name}@{version}?arch=amd64"),
        licence: None,
    }
}

/// The package that brought `file`; links in the way to it are followed.
fn owner_of<'a>(root: &Path, file: &Path, all: &'a [Owner]) -> anyhow::Result<&'a Owner> {
    let real = file.canonicalize()?;
    let real = real.strip_prefix(root.canonicalize()?)?;
    let path = real.to_string_lossy();
    let owner = all.iter().find(|owner| owner.files.contains(&*path));
    owner.with_context(|| format!("no package brought {path}"))
}
