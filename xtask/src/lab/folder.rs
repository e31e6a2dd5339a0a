//! Where the lab keeps its logs, its disks and who its processes are.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use serde::{Deserialize, Serialize};

use crate::controlplane;
use crate::controlplane::process::{Ending, Process};
use crate::paths;
use crate::vm::store::fingerprint;

/// What is written down about a lab.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Record {
    /// Whom the network namespace belongs to; it goes with that process.
    pub(super) holder: Process,
    /// The test run it belongs to: when that is gone, the lab is a leftover.
    owner: Option<Process>,
    /// The guests by their names.
    pub(super) nodes: BTreeMap<String, Process>,
}

/// The folder of the lab of this work tree.
pub(super) struct Folder {
    path: PathBuf,
    owner: Option<Process>,
}

impl Folder {
    /// That of this work tree.
    pub(super) fn here() -> Self {
        let name = fingerprint(paths::root());
        Self {
            path: paths::cache().join("lab").join(name),
            owner: None,
        }
    }

    /// The same, for a lab that is nobody's once this process is gone.
    pub(super) fn of_test() -> anyhow::Result<Self> {
        Ok(Self {
            owner: Some(Process::new(std::process::id())?),
            ..Self::here()
        })
    }

    /// The folder itself.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Its control plane's.
    pub(super) fn controlplane(&self) -> controlplane::folder::Folder {
        controlplane::folder::Folder::at(self.path.join("controlplane"))
    }

    /// The folder for container images, created when missing.
    pub(super) fn images(&self) -> anyhow::Result<PathBuf> {
        let images = self.path.join("images");
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&images)
            .with_context(|| format!("cannot create {}", images.display()))?;
        Ok(images)
    }

    /// Whether its network is there, and somebody wants it.
    pub(super) fn is_running(&self) -> bool {
        let wanted = |owner: &Option<Process>| owner.as_ref().is_none_or(Process::is_running);
        self.record()
            .is_ok_and(|record| record.holder.is_running() && wanted(&record.owner))
    }

    /// What is written down.
    pub(super) fn record(&self) -> anyhow::Result<Record> {
        Ok(serde_json::from_slice(&fs::read(self.record_file())?)?)
    }

    /// Writes down whom the network belongs to.
    pub(super) fn begin(&self, holder: Process) -> anyhow::Result<()> {
        self.write(&Record {
            holder,
            owner: self.owner.clone(),
            nodes: BTreeMap::new(),
        })
    }

    /// Writes down that the node `name` is `process`.
    pub(super) fn remember(&self, name: &str, process: Process) -> anyhow::Result<()> {
        let mut record = self.record()?;
        record.nodes.insert(name.to_owned(), process);
        self.write(&record)
    }

    /// A node that was started and ended.
    pub(super) fn gone(&self) -> anyhow::Result<Option<String>> {
        let nodes = self.record()?.nodes;
        let mut gone = nodes
            .into_iter()
            .filter(|(_, process)| !process.is_running());
        Ok(gone.next().map(|(name, _)| name))
    }

    /// Ends every process: guests, control plane, and the network with its holder.
    pub(super) fn end_processes(&self) -> anyhow::Result<()> {
        let record = self.record().ok();
        for process in record.iter().flat_map(|record| record.nodes.values()) {
            process.end(Ending::Killed)?;
        }
        self.controlplane().end()?;
        match record {
            Some(record) => record.holder.end(Ending::Killed),
            None => Ok(()),
        }
    }

    /// Ends every process and removes the folder.
    pub(super) fn end(&self) -> anyhow::Result<()> {
        if !self.path.exists() {
            return Ok(());
        }
        self.end_processes()?;
        let removed = fs::remove_dir_all(&self.path);
        removed.with_context(|| format!("cannot remove {}", self.path.display()))
    }

    fn record_file(&self) -> PathBuf {
        self.path.join("record.json")
    }

    fn write(&self, record: &Record) -> anyhow::Result<()> {
        let new = self.path.join("record.new");
        fs::write(&new, serde_json::to_vec_pretty(record)?)?;
        Ok(fs::rename(new, self.record_file())?)
    }
}
