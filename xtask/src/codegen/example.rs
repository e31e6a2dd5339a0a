//! Runs an example of a crate, which prints what is generated, so that this program builds without the crate.

use std::process::Command;

use anyhow::{Context as _, ensure};

use testbed::cargo;

/// The output of the example `name`.
pub(super) fn output(name: &str) -> anyhow::Result<String> {
    let mut build = cargo::whole("build");
    let program = cargo::build(build.args(["--example", name]), name)?;
    let output = Command::new(&program)
        .output()
        .with_context(|| format!("running {}", program.display()))?;
    ensure!(output.status.success(), "{} failed", program.display());
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
