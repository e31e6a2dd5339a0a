//! Writes the second disk of the guests: keys, and the container images as containerd stores them.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;

use super::folder::Folder;
use super::{disk, import, node};
use crate::controlplane::state_file::make_folder;
use crate::vm::tools::Tools;

/// The size of the disk; containers write to it, too.
const SIZE: &str = "2G";

pub(super) fn write(
    folder: &Folder,
    packages: &Tools,
    tools: &Tools,
    images: &[PathBuf],
) -> anyhow::Result<PathBuf> {
    let content = folder.path().join("payload");
    let keys = content.join("keys");
    make_folder(&keys)?;
    let controlplane = folder.controlplane();
    add(&keys, &controlplane.path().join("ca.crt"))?;
    for node in node::NODES {
        let kubeconfig = format!("node-{node}.kubeconfig");
        add(&keys, &controlplane.path().join(kubeconfig))?;
    }
    let work = folder.path().join("import");
    import::import(packages, images, &content.join("containerd"), &work)?;
    let image = folder.path().join("payload.ext4");
    disk::write(&content, tools, &image, SIZE)?;
    fs::remove_dir_all(content)?;
    Ok(image)
}

fn add(to: &Path, file: &Path) -> anyhow::Result<()> {
    let name = file.file_name().context("a file without a name")?;
    fs::copy(file, to.join(name)).with_context(|| format!("cannot read {}", file.display()))?;
    Ok(())
}
