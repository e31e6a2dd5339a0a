//! Writes a folder as a file system without mounting anything.

use std::fs;
use std::path::Path;

use crate::vm::Machines;
use crate::vm::command::output;
use crate::vm::tools::{SUITE, Tools};

/// Returns the programs for it.
pub(super) fn tools(machines: &Machines) -> anyhow::Result<Tools> {
    Tools::of(&machines.store, "lab-host", SUITE, &["e2fsprogs"])
}

/// Writes `work` as an ext4 file system of `size` into a sparse file.
pub(super) fn write(work: &Path, tools: &Tools, image: &Path, size: &str) -> anyhow::Result<()> {
    let half_done = image.with_extension("unfinished");
    // An interrupted run may have left an incomplete file.
    drop(fs::remove_file(&half_done));
    let mut mke2fs = tools.host("mke2fs")?;
    mke2fs
        .args([
            "-q",
            "-F",
            "-t",
            "ext4",
            "-O",
            "^has_journal",
            "-E",
            "root_owner=0:0",
            "-d",
        ])
        .arg(work)
        .arg(&half_done)
        .arg(size);
    output(&mut mke2fs)?;
    Ok(fs::rename(half_done, image)?)
}
