//! `MetalLB`, which announces addresses of load balancers: its programs, images and manifest, all of its Go module.

use std::path::{Path, PathBuf};

use anyhow::Context as _;

use crate::go::program::{GoProgram, Output};
use crate::image;
use crate::vm::progress::ProgressLine;

/// `MetalLB`'s module, in the version of `xtask/metallb/go.mod`.
const MODULE: &str = "go.universe.tf/metallb";

/// The registry part of its images' names, as its manifest has them.
const REGISTRY: &str = "quay.io/metallb";

/// Assigns addresses to Services.
const CONTROLLER: GoProgram = GoProgram {
    name: "controller",
    module: "metallb",
    modules: "go.mod",
    variant: "newest",
    package: "go.universe.tf/metallb/controller",
    sources: &[],
    output: Output::Program,
    release_of: MODULE,
};

/// Announces the addresses on each node.
const SPEAKER: GoProgram = GoProgram {
    name: "speaker",
    package: "go.universe.tf/metallb/speaker",
    ..CONTROLLER
};

/// Builds both programs if need be, writes their images into `folder`, and returns the archives.
pub(crate) fn write_images(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let programs = [
        (CONTROLLER.name, CONTROLLER.build()?),
        (SPEAKER.name, SPEAKER.build()?),
    ];
    let release = CONTROLLER.release()?;
    let step = ProgressLine::begin(format!("writing the images of MetalLB {release}"));
    let written = programs.iter().map(|(name, program)| {
        let reference = format!("{REGISTRY}/{name}:{release}");
        image::write_program(name, program, reference, folder)
    });
    let written = written.collect::<anyhow::Result<_>>()?;
    step.done("");
    Ok(written)
}

/// Returns the path of the manifest that its documentation installs for layer 2.
pub(crate) fn manifest() -> anyhow::Result<PathBuf> {
    let controller = CONTROLLER.folder_of(CONTROLLER.package)?;
    let module = controller.parent().context("a package without a module")?;
    Ok(module.join("config/manifests/metallb-native.yaml"))
}
