//! `cargo xtask book`: builds the pages of `docs` as a website in `target/book`, and checks its links.

mod links;

use std::process::{Command, ExitCode};

use anyhow::{Context as _, ensure};

use crate::tools::{self, Tool};
use links::Site;
use testbed::paths;

/// Builds the pages; without its server and watcher, which nothing here uses.
const MDBOOK: Tool = Tool {
    name: "mdbook",
    version: "^0.5",
    arguments: &["--no-default-features"],
};

/// Where `book.toml` puts the website.
const BOOK: &str = "target/book";

/// Options of `cargo xtask book`.
#[derive(clap::Args)]
pub(crate) struct Args {}

/// Builds the book.
pub(crate) fn run(_: &Args) -> anyhow::Result<ExitCode> {
    let program = tools::program(&MDBOOK)?;
    let status = Command::new(&program)
        .arg("build")
        .current_dir(paths::root())
        .status()
        .with_context(|| format!("running {}", program.display()))?;
    ensure!(status.success(), "mdbook failed");
    let broken = Site::read(&paths::root().join(BOOK))?.broken();
    for line in &broken {
        anstream::println!("book: {line}");
    }
    ensure!(broken.is_empty(), "{} links lead nowhere", broken.len());
    anstream::println!("book: open {BOOK}/index.html");
    Ok(ExitCode::SUCCESS)
}
