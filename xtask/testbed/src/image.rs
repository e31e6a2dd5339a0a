//! `cargo xtask image`: writes the container images as OCI archives, without a container daemon.
//!
//! Each image has one layer: static binaries, and for the agent `nft` with its libraries from Debian's packages. The
//! same sources, packages and compiler give the same bytes.

mod archive;
mod component;
mod contents;
mod debian;
mod sbom;
mod test_images;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, ensure};

use crate::paths;
use crate::vm::Machines;
use crate::vm::build::{self, Profile};
use crate::vm::image::Addition;
use crate::vm::progress::ProgressLine;
use crate::vm::tools::{SUITE, Tools};
use contents::Contents;
pub(crate) use test_images::{DnsServer, TestImages, write_test_images};

/// Options of `cargo xtask image`.
#[derive(clap::Args)]
pub struct Args {
    /// The folder for the archives; by default one in the cache.
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    /// The build profile of the programs.
    #[arg(long, value_enum, default_value = "release")]
    profile: Profile,
    /// Write every image twice, compare the bytes, and print `N passed, N failed`.
    #[arg(long)]
    check: bool,
}

struct Image {
    /// The last part of the image's name.
    name: &'static str,
    package: &'static str,
    /// The entry point.
    program: &'static str,
    /// The default arguments of the entry point.
    arguments: &'static [&'static str],
    nft: bool,
}

const ALL: [Image; 3] = [
    Image {
        name: "agent",
        package: "cli",
        program: "ipvs-topo",
        arguments: &["--help"],
        nft: true,
    },
    Image {
        name: "controller",
        package: "controller",
        program: "ipvs-topo-controller",
        arguments: &[],
        nft: false,
    },
    // Pods and clients in the tests.
    Image {
        name: "guest",
        package: "guest",
        program: "guest",
        arguments: &["pause"],
        nft: false,
    },
];

/// Writes every image and prints its path.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let out = match &args.out {
        Some(out) => std::path::absolute(out)?,
        None => paths::cache().join("images"),
    };
    if !args.check {
        for archive in write_all(&out, args.profile)? {
            anstream::println!("{}", archive.display());
        }
        return Ok(ExitCode::SUCCESS);
    }
    let [first, second] = ["first", "second"].map(|name| out.join("check").join(name));
    let mut failed = 0;
    let pairs = write_all(&first, args.profile)?
        .into_iter()
        .zip(write_all(&second, args.profile)?);
    for (one, other) in pairs {
        if fs::read(&one)? != fs::read(&other)? {
            anstream::println!("{} and {} differ", one.display(), other.display());
            failed += 1;
        }
    }
    anstream::println!("{} passed, {failed} failed", ALL.len() - failed);
    Ok(ExitCode::from(u8::from(failed > 0)))
}

/// Builds the programs, writes each image into `folder`, and returns the archives.
pub(crate) fn write_all(folder: &Path, profile: Profile) -> anyhow::Result<Vec<PathBuf>> {
    fs::create_dir_all(folder)?;
    let machines = Machines::open()?;
    let packages = ALL.map(|image| image.package);
    let programs = build::some_programs(&packages, profile)?;
    let mut archives = Vec::new();
    for image in &ALL {
        let step = ProgressLine::begin(format!("writing the image {}", image.name));
        let mut contents = contents_of(image, &programs)?;
        if image.nft {
            let tools = Tools::of(&machines.store, "image-nftables", SUITE, &["nftables"])?;
            debian::add(&mut contents, &tools, &["nft"])?;
        }
        let archive = archive::write(&contents, folder)?;
        step.done(&format!("({:.1} MB)", megabytes(&archive)?));
        archives.push(archive);
    }
    Ok(archives)
}

/// Writes an image `reference` that contains only the static `program` into `folder`, and returns the archive.
pub(crate) fn write_program(
    name: &'static str,
    program: &Path,
    reference: String,
    folder: &Path,
) -> anyhow::Result<PathBuf> {
    fs::create_dir_all(folder)?;
    let contents = Contents::of_program(name, program, vec![reference])?;
    archive::write_image(&contents, folder)
}

fn contents_of(image: &Image, programs: &[Addition]) -> anyhow::Result<Contents> {
    let path = format!("usr/bin/{}", image.program);
    let file = programs.iter().find_map(|built| match built {
        Addition::Program { path: at, from } if *at == path => Some(from),
        _ => None,
    });
    let file = file.with_context(|| format!("cargo built no {}", image.program))?;
    let mut contents = Contents::new(image.name, &format!("/{path}"), image.arguments).ours();
    contents.program(&path, fs::read(file)?);
    contents.components = sbom::crates(image.package)?;
    ensure!(
        !contents.components.is_empty(),
        "cargo named no crate of {}",
        image.package
    );
    Ok(contents)
}

#[expect(clippy::cast_precision_loss, reason = "a figure for people")]
fn megabytes(file: &Path) -> anyhow::Result<f64> {
    Ok(fs::metadata(file)?.len() as f64 / 1e6)
}
