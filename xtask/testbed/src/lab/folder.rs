//! Where the lab keeps its logs, its disks and who its processes are.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use serde::{Deserialize, Serialize};

use crate::controlplane;
use crate::controlplane::process::Process;
use crate::controlplane::record;
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
    pub(super) nodes: BTreeMap<String, Guest>,
}

/// What is written down about a guest.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Guest {
    /// The words that start it.
    pub(super) words: Vec<String>,
    /// Who it is; none while it is off.
    pub(super) process: Option<Process>,
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
        record::make_folder(&images)?;
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
        record::read(&self.path).context("no lab here")
    }

    /// Writes down whom the network belongs to.
    pub(super) fn begin(&self, holder: Process) -> anyhow::Result<()> {
        self.write(&Record {
            holder,
            owner: self.owner.clone(),
            nodes: BTreeMap::new(),
        })
    }

    /// Writes down that it belongs to no process.
    pub(super) fn disown(&self) -> anyhow::Result<()> {
        self.write(&Record {
            owner: None,
            ..self.record()?
        })
    }

    /// Writes down what the node `name` is.
    pub(super) fn remember(&self, name: &str, guest: Guest) -> anyhow::Result<()> {
        let mut record = self.record()?;
        record.nodes.insert(name.to_owned(), guest);
        self.write(&record)
    }

    /// A node that was started and ended by itself.
    pub(super) fn gone(&self) -> anyhow::Result<Option<String>> {
        let has_ended = |guest: &Guest| guest.process.as_ref().is_some_and(|one| !one.is_running());
        let mut nodes = self.record()?.nodes.into_iter();
        Ok(nodes
            .find(|(_, guest)| has_ended(guest))
            .map(|(name, _)| name))
    }

    /// Ends every process: guests, control plane, and the network with its holder.
    pub(super) fn end_processes(&self) -> anyhow::Result<()> {
        self.controlplane().end()?;
        record::end_processes(&self.path)
    }

    /// Ends every process and removes the folder.
    pub(super) fn end(&self) -> anyhow::Result<()> {
        self.end_processes()?;
        record::remove(&self.path)
    }

    fn write(&self, record: &Record) -> anyhow::Result<()> {
        record::write(&self.path, record)
    }
}
