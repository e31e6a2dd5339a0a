//! `cargo xtask book`: builds the pages of `docs` as a website in `target/book`.

use std::process::{Command, ExitCode};

use anyhow::{Context as _, ensure};

use crate::tools::{self, Tool};
use testbed::paths;

/// Builds the pages; without its server and watcher, which nothing here uses.
const MDBOOK: Tool = Tool {
    name: "mdbook",
    version: "^0.5",
    arguments: &["--no-default-features"],
};

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
    anstream::println!("book: open target/book/index.html");
    Ok(ExitCode::SUCCESS)
}
