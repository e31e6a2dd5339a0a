//! Installs programs that cargo can build into the cache, once.

use std::path::PathBuf;

use anyhow::ensure;

use testbed::{cargo, paths};

/// A program of a crate of its name.
pub(crate) struct Tool {
    pub(crate) name: &'static str,
    /// What cargo may install; a minor version keeps the meaning of the configuration.
    pub(crate) version: &'static str,
    /// Further arguments of `cargo install`.
    pub(crate) arguments: &'static [&'static str],
}

/// Returns the file of this program, to run another of its commands.
pub(crate) fn own_program() -> PathBuf {
    let program = std::env::current_exe().unwrap_or_default();
    // A build of the workspace may have replaced the file; the new one has the same path.
    let path = program.to_string_lossy();
    PathBuf::from(path.trim_end_matches(" (deleted)"))
}

/// Returns the program, and installs it first if it is missing (a minute or two on two cores).
pub(crate) fn program(tool: &Tool) -> anyhow::Result<PathBuf> {
    let root = paths::cache().join("tools");
    let program = root.join("bin").join(tool.name);
    if program.exists() {
        return Ok(program);
    }
    anstream::println!("installing {} into {}", tool.name, root.display());
    let mut install = cargo::command();
    install
        .args(["install", tool.name, "--locked", "--debug", "--quiet"])
        .args(["--version", tool.version])
        .args(tool.arguments)
        .arg("--root")
        .arg(&root)
        .env("CARGO_TARGET_DIR", root.join("build"));
    let output = install.output()?;
    // The build folder is large, and nothing else uses it; a folder that stays is no failure.
    drop(std::fs::remove_dir_all(root.join("build")));
    ensure!(
        output.status.success(),
        "{install:?} failed:\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(program)
}
