//! Runs a command of `ipvs-topo` that prints and ends.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, bail};

/// Runs `ipvs-topo` with `words` and then `folder`, and returns its output.
pub(super) fn ipvs_topo(words: &[&str], folder: &Path) -> anyhow::Result<Vec<u8>> {
    let done = Command::new("ipvs-topo").args(words).arg(folder).output();
    let done = done.context("cannot start `ipvs-topo`")?;
    if !done.status.success() {
        let said = String::from_utf8_lossy(&done.stderr);
        bail!("`ipvs-topo {}`: {said}", words.join(" "));
    }
    Ok(done.stdout)
}
