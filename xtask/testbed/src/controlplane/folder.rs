//! The folder of one control plane: its data, keys, logs, and the list of its processes.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, bail};
use serde::{Deserialize, Serialize};

use super::config::{ControlPlaneConfig, ControlPlanePart};
use super::process::Process;
use super::program::Version;
use super::state_file;
use crate::paths;
use crate::vm::store::fingerprint;

/// The variable that names the folder to commands that a test starts.
pub(crate) const VARIABLE: &str = "CONTROLPLANE_FOLDER";

/// The stored state of a control plane.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ControlPlaneState {
    pub(crate) config: ControlPlaneConfig,
    pub(crate) program: PathBuf,
    /// The test run that started it. When that process has exited, the next run removes the control plane.
    pub(crate) owner: Option<Process>,
    /// The parts that run.
    pub(crate) processes: BTreeMap<ControlPlanePart, Process>,
}

#[derive(Debug, Clone)]
pub(crate) struct Folder {
    path: PathBuf,
}

impl Folder {
    /// Returns the folder of `version` in this work tree, or the one that the environment names.
    pub(crate) fn of(version: Version) -> Self {
        let work_tree = fingerprint(paths::root());
        let own = || runs().join(format!("{}-{work_tree}", version.name()));
        Self {
            path: std::env::var_os(VARIABLE).map_or_else(own, PathBuf::from),
        }
    }

    pub(crate) fn at(path: PathBuf) -> Self {
        Self { path }
    }

    /// Returns a folder for a test run of this process.
    pub(crate) fn of_test() -> Self {
        Self {
            path: runs().join(format!("test-{}", std::process::id())),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.path.join("admin.kubeconfig")
    }

    /// Returns the log file of `part`.
    pub(crate) fn log(&self, part: ControlPlanePart) -> PathBuf {
        self.path.join(format!("{}.log", part.name()))
    }

    /// Returns kubectl with the administrator's kubeconfig.
    pub(crate) fn kubectl(&self) -> anyhow::Result<Command> {
        let state = self.state()?;
        let mut kubectl = state.config.command(&state.program);
        kubectl.arg("kubectl").env("KUBECONFIG", self.kubeconfig());
        Ok(kubectl)
    }

    /// Returns whether any of its processes runs.
    pub(crate) fn is_running(&self) -> bool {
        let state = self.state();
        state.is_ok_and(|state| state.processes.values().any(Process::is_running))
    }

    /// Creates it, empty and readable only by this user, and removes control planes whose test run was killed.
    pub(crate) fn create(
        &self,
        config: ControlPlaneConfig,
        program: &Path,
        owner: Option<Process>,
    ) -> anyhow::Result<()> {
        if self.is_running() {
            bail!("it runs already: `cargo xtask controlplane down` ends it");
        }
        self.end()?;
        sweep(&runs())?;
        state_file::make_folder(&self.path)?;
        self.write(&ControlPlaneState {
            config,
            program: program.to_owned(),
            owner,
            processes: BTreeMap::new(),
        })
    }

    /// Reads the stored state.
    pub(crate) fn state(&self) -> anyhow::Result<ControlPlaneState> {
        state_file::read(&self.path).context("no control plane here")
    }

    /// Stores the process of `part`, before anything waits for it, so that no process is lost.
    pub(crate) fn add_process(
        &self,
        part: ControlPlanePart,
        process: Process,
    ) -> anyhow::Result<()> {
        let mut state = self.state()?;
        state.processes.insert(part, process);
        self.write(&state)
    }

    /// Stores that `part` was stopped.
    pub(crate) fn remove_process(&self, part: ControlPlanePart) -> anyhow::Result<()> {
        let mut state = self.state()?;
        state.processes.remove(&part);
        self.write(&state)
    }

    /// Stops every process and removes the folder.
    pub(crate) fn end(&self) -> anyhow::Result<()> {
        state_file::end_processes(&self.path)?;
        state_file::remove(&self.path)
    }

    fn write(&self, state: &ControlPlaneState) -> anyhow::Result<()> {
        state_file::write(&self.path, state)
    }

    fn is_leftover(&self) -> bool {
        let owner = self.state().ok().and_then(|state| state.owner);
        owner.is_some_and(|owner| !owner.is_running())
    }
}

fn runs() -> PathBuf {
    paths::cache().join("controlplane/runs")
}

/// Stops the control planes of test runs that were killed.
fn sweep(runs: &Path) -> anyhow::Result<()> {
    let Ok(entries) = fs::read_dir(runs) else {
        return Ok(());
    };
    for entry in entries {
        let folder = Folder {
            path: entry?.path(),
        };
        if folder.is_leftover() {
            folder.end()?;
        }
    }
    Ok(())
}
