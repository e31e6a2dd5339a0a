//! The folder of the lab: its logs and disks, and the list of its processes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use serde::{Deserialize, Serialize};

use crate::controlplane;
use crate::controlplane::process::Process;
use crate::controlplane::state_file;
use crate::paths;
use crate::vm::store::fingerprint;

/// The stored state of a lab.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct LabState {
    /// The process that keeps the network namespace alive.
    pub(super) holder: Process,
    /// The test run that started it. When that process has exited, the next command removes the lab.
    owner: Option<Process>,
    pub(super) nodes: BTreeMap<String, Guest>,
}

/// The stored state of a guest.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Guest {
    /// Its command line.
    pub(super) words: Vec<String>,
    /// Its process; `None` while it is off.
    pub(super) process: Option<Process>,
}

pub(super) struct Folder {
    path: PathBuf,
    owner: Option<Process>,
}

impl Folder {
    /// Returns the folder of this work tree's lab.
    pub(super) fn here() -> Self {
        let name = fingerprint(paths::root());
        Self {
            path: paths::cache().join("lab").join(name),
            owner: None,
        }
    }

    /// Returns the same folder, for a lab that the next command removes when this process has exited.
    pub(super) fn of_test() -> anyhow::Result<Self> {
        Ok(Self {
            owner: Some(Process::new(std::process::id())?),
            ..Self::here()
        })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the folder of its control plane.
    pub(super) fn controlplane(&self) -> controlplane::folder::Folder {
        controlplane::folder::Folder::at(self.path.join("controlplane"))
    }

    /// Returns the folder for container images, and creates it if it is missing.
    pub(super) fn images(&self) -> anyhow::Result<PathBuf> {
        let images = self.path.join("images");
        state_file::make_folder(&images)?;
        Ok(images)
    }

    /// Returns the path for images that are written before the lab's folder exists.
    pub(super) fn more_images(&self) -> PathBuf {
        self.path.with_extension("images")
    }

    /// Returns whether its network exists and the test run that started it still runs.
    pub(super) fn is_running(&self) -> bool {
        let wanted = |owner: &Option<Process>| owner.as_ref().is_none_or(Process::is_running);
        self.state()
            .is_ok_and(|state| state.holder.is_running() && wanted(&state.owner))
    }

    /// Reads the stored state.
    pub(super) fn state(&self) -> anyhow::Result<LabState> {
        state_file::read(&self.path).context("no lab here")
    }

    /// Stores the process that keeps the network namespace alive.
    pub(super) fn begin(&self, holder: Process) -> anyhow::Result<()> {
        self.write(&LabState {
            holder,
            owner: self.owner.clone(),
            nodes: BTreeMap::new(),
        })
    }

    /// Stores that it does not belong to a test run.
    pub(super) fn disown(&self) -> anyhow::Result<()> {
        self.write(&LabState {
            owner: None,
            ..self.state()?
        })
    }

    /// Stores the guest of the node `name`.
    pub(super) fn set_guest(&self, name: &str, guest: Guest) -> anyhow::Result<()> {
        let mut state = self.state()?;
        state.nodes.insert(name.to_owned(), guest);
        self.write(&state)
    }

    /// Returns a node that was turned on and has exited.
    pub(super) fn gone(&self) -> anyhow::Result<Option<String>> {
        let has_ended = |guest: &Guest| guest.process.as_ref().is_some_and(|one| !one.is_running());
        let mut nodes = self.state()?.nodes.into_iter();
        Ok(nodes
            .find(|(_, guest)| has_ended(guest))
            .map(|(name, _)| name))
    }

    /// Stops every process: guests, control plane, and the process of the network namespace.
    pub(super) fn end_processes(&self) -> anyhow::Result<()> {
        self.controlplane().end()?;
        state_file::end_processes(&self.path)
    }

    /// Stops every process and removes the folder.
    pub(super) fn end(&self) -> anyhow::Result<()> {
        self.end_processes()?;
        state_file::remove(&self.path)
    }

    fn write(&self, state: &LabState) -> anyhow::Result<()> {
        state_file::write(&self.path, state)
    }
}
