//! Writes the reference of commands: what every command prints with `--help`.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, ensure};

use crate::tidy::commands::listed_commands;
use testbed::cargo;

/// Where the reference is.
pub(super) const DOCUMENT: &str = "docs/commands.md";

const HEAD: &str = "# Commands\n\n\
    This page is generated from `--help` by `cargo xtask codegen`.\n\
    [operations.md](operations.md#commands) lists the commands by task, with exit codes.\n";

/// The whole page.
pub(super) fn page() -> anyhow::Result<String> {
    let mut page = HEAD.to_owned();
    for name in ["ipvs-topo", "ipvs-topo-controller"] {
        let program = cargo::build(cargo::whole("build").args(["--bin", name]), name)?;
        add(&mut page, &program, &[name])?;
    }
    Ok(page)
}

fn add(page: &mut String, program: &Path, words: &[&str]) -> anyhow::Result<()> {
    let title = words.join(" ");
    let output = Command::new(program)
        .args(words.iter().skip(1))
        .arg("--help")
        .output()
        .with_context(|| format!("running {title} --help"))?;
    ensure!(output.status.success(), "{title} --help failed");
    let help = String::from_utf8_lossy(&output.stdout);
    let lines: Vec<&str> = help.trim().lines().map(str::trim_end).collect();
    write!(page, "\n## {title}\n\n```text\n{}\n```\n", lines.join("\n"))?;
    for name in listed_commands(&help) {
        add(page, program, &[words, &[name]].concat())?;
    }
    Ok(())
}
