//! Running host programs: one place where a failure becomes a sentence.

use std::process::Command;

use anyhow::{Context, bail};

/// Runs `command` to its end; its standard output, or an error that shows what it said.
pub(crate) fn output(command: &mut Command) -> anyhow::Result<String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let done = command
        .output()
        .with_context(|| format!("cannot start `{program}`"))?;
    if !done.status.success() {
        let said = String::from_utf8_lossy(&done.stderr);
        bail!("`{program}` failed ({}):\n{}", done.status, said.trim_end());
    }
    Ok(String::from_utf8_lossy(&done.stdout).into_owned())
}
