//! Measures, or reads the readings of an earlier run, and writes them.

use std::fs;
use std::path::Path;

use anyhow::Context as _;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::args::Args;

/// Measures, or reads the readings of `--from`, and writes them to `file` in the folder of `--out`.
pub(super) fn measured<M: Serialize + DeserializeOwned>(
    args: &Args,
    file: &str,
    measure: impl FnOnce() -> anyhow::Result<M>,
) -> anyhow::Result<M> {
    let readings = match &args.from {
        Some(from) => read(from).with_context(|| from.display().to_string())?,
        None => measure()?,
    };
    let mut json = serde_json::to_string_pretty(&readings)?;
    json.push('\n');
    fs::create_dir_all(&args.out)?;
    fs::write(args.out.join(file), json)?;
    Ok(readings)
}

fn read<M: DeserializeOwned>(from: &Path) -> anyhow::Result<M> {
    Ok(serde_json::from_slice(&fs::read(from)?)?)
}
