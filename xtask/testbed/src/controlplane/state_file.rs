//! Stores the state of a control plane or a lab in its folder, mainly the list of its processes.

use std::fs;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::process::{Process, StopMode};

/// The field with the test run, which is not one of the processes to stop.
const OWNER: &str = "owner";

/// Creates `folder`, readable only by this user, if it is missing.
pub(crate) fn make_folder(folder: &Path) -> anyhow::Result<()> {
    let mut builder = fs::DirBuilder::new();
    let created = builder.recursive(true).mode(0o700).create(folder);
    created.with_context(|| format!("cannot create {}", folder.display()))
}

/// Reads the state in `folder`.
pub(crate) fn read<T: DeserializeOwned>(folder: &Path) -> anyhow::Result<T> {
    let file = file(folder);
    let text =
        fs::read(&file).with_context(|| format!("nothing runs: {} is missing", file.display()))?;
    serde_json::from_slice(&text)
        .with_context(|| format!("another version wrote {}", file.display()))
}

/// Replaces the state atomically.
pub(crate) fn write<T: Serialize>(folder: &Path, state: &T) -> anyhow::Result<()> {
    let new = folder.join("record.new");
    fs::write(&new, serde_json::to_vec_pretty(state)?)?;
    Ok(fs::rename(new, file(folder))?)
}

/// Kills every stored process; also reads files that another version wrote.
pub(crate) fn end_processes(folder: &Path) -> anyhow::Result<()> {
    if !file(folder).exists() {
        return Ok(());
    }
    for process in processes(&read(folder)?) {
        process.end(StopMode::Kill)?;
    }
    Ok(())
}

pub(crate) fn remove(folder: &Path) -> anyhow::Result<()> {
    if !folder.exists() {
        return Ok(());
    }
    fs::remove_dir_all(folder).with_context(|| format!("cannot remove {}", folder.display()))
}

fn file(folder: &Path) -> PathBuf {
    folder.join("record.json")
}

/// Finds every process in `state` at any depth.
fn processes(state: &Value) -> Vec<Process> {
    if let Ok(process) = serde_json::from_value(state.clone()) {
        return vec![process];
    }
    match state {
        Value::Object(fields) => {
            let parts = fields.iter().filter(|(name, _)| *name != OWNER);
            parts.flat_map(|(_, value)| processes(value)).collect()
        }
        Value::Array(values) => values.iter().flat_map(processes).collect(),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn processes_are_found_in_a_record_of_any_format_and_the_owner_is_spared() {
        let state = json!({
            "holder": {"pid": 1, "began": 10},
            "owner": {"pid": 2, "began": 20},
            "nodes": {"n1": {"pid": 3, "began": 30}, "n2": {"words": ["qemu"], "process": {"pid": 4, "began": 40}}},
            "others": [{"pid": 5, "began": 50}, null],
        });
        let found: Vec<u32> = processes(&state).iter().map(Process::pid).collect();
        assert_eq!(found, [1, 3, 4, 5]);
    }
}
