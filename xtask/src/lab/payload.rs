//! What the guests of one lab get beside their root: images and keys, as a plain tar on a second disk.

use std::fs::File;
use std::path::{Path, PathBuf};

use anyhow::Context as _;

use super::folder::Folder;

/// Writes the disk.
pub(super) fn write(folder: &Folder, images: &[PathBuf]) -> anyhow::Result<PathBuf> {
    let file = folder.path().join("payload.tar");
    let mut tar = tar::Builder::new(File::create(&file)?);
    for image in images {
        add(&mut tar, "images", image)?;
    }
    let controlplane = folder.controlplane();
    add(&mut tar, "keys", &controlplane.path().join("ca.crt"))?;
    for node in super::NODES {
        let kubeconfig = format!("node-{node}.kubeconfig");
        add(&mut tar, "keys", &controlplane.path().join(kubeconfig))?;
    }
    tar.finish()?;
    Ok(file)
}

fn add(tar: &mut tar::Builder<File>, to: &str, file: &Path) -> anyhow::Result<()> {
    let name = file.file_name().context("a file without a name")?;
    tar.append_path_with_name(file, Path::new(to).join(name))
        .with_context(|| format!("cannot read {}", file.display()))
}
