//! Where one control plane keeps its data, its keys, its logs and who its processes are.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, bail};
use serde::{Deserialize, Serialize};

use super::process::Process;
use super::program::Version;
use super::record;
use super::site::{Part, Site};
use crate::paths;
use crate::vm::store::fingerprint;

/// Names the folder to commands that a test starts.
pub(crate) const VARIABLE: &str = "CONTROLPLANE_FOLDER";

/// What is written down about a control plane.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Record {
    pub(crate) site: Site,
    pub(crate) program: PathBuf,
    /// The test run it belongs to: when that is gone, the control plane is a leftover.
    pub(crate) owner: Option<Process>,
    /// The parts that were started and not stopped.
    pub(crate) processes: BTreeMap<Part, Process>,
}

/// The folder of one control plane.
#[derive(Debug, Clone)]
pub(crate) struct Folder {
    path: PathBuf,
}

impl Folder {
    /// That of `version` in this work tree, or the one that the environment names.
    pub(crate) fn of(version: Version) -> Self {
        let work_tree = fingerprint(paths::root());
        let own = || runs().join(format!("{}-{work_tree}", version.name()));
        Self {
            path: std::env::var_os(VARIABLE).map_or_else(own, PathBuf::from),
        }
    }

    /// The one at `path`.
    pub(crate) fn at(path: PathBuf) -> Self {
        Self { path }
    }

    /// One for a test run of this process.
    pub(crate) fn of_test() -> Self {
        Self {
            path: runs().join(format!("test-{}", std::process::id())),
        }
    }

    /// The folder itself.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The administrator's kubeconfig.
    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.path.join("admin.kubeconfig")
    }

    /// What `part` says.
    pub(crate) fn log(&self, part: Part) -> PathBuf {
        self.path.join(format!("{}.log", part.name()))
    }

    /// kubectl as the administrator.
    pub(crate) fn kubectl(&self) -> anyhow::Result<Command> {
        let record = self.record()?;
        let mut kubectl = record.site.command(&record.program);
        kubectl.arg("kubectl").env("KUBECONFIG", self.kubeconfig());
        Ok(kubectl)
    }

    /// Whether any process of it runs.
    pub(crate) fn is_running(&self) -> bool {
        let record = self.record();
        record.is_ok_and(|record| record.processes.values().any(Process::is_running))
    }

    /// Makes it anew, empty and for nobody else's eyes, after a look for what others left behind.
    pub(crate) fn create(
        &self,
        site: Site,
        program: &Path,
        owner: Option<Process>,
    ) -> anyhow::Result<()> {
        if self.is_running() {
            bail!("it runs already: `cargo xtask controlplane down` ends it");
        }
        self.end()?;
        sweep(&runs())?;
        record::make_folder(&self.path)?;
        self.write(&Record {
            site,
            program: program.to_owned(),
            owner,
            processes: BTreeMap::new(),
        })
    }

    /// What is written down.
    pub(crate) fn record(&self) -> anyhow::Result<Record> {
        record::read(&self.path).context("no control plane here")
    }

    /// Writes down that `part` is `process`; before it is waited for, so that none is ever lost.
    pub(crate) fn remember(&self, part: Part, process: Process) -> anyhow::Result<()> {
        let mut record = self.record()?;
        record.processes.insert(part, process);
        self.write(&record)
    }

    /// Writes down that `part` was stopped.
    pub(crate) fn forget(&self, part: Part) -> anyhow::Result<()> {
        let mut record = self.record()?;
        record.processes.remove(&part);
        self.write(&record)
    }

    /// Ends every process and removes the folder.
    pub(crate) fn end(&self) -> anyhow::Result<()> {
        record::end_processes(&self.path)?;
        record::remove(&self.path)
    }

    fn write(&self, record: &Record) -> anyhow::Result<()> {
        record::write(&self.path, record)
    }

    fn is_leftover(&self) -> bool {
        let owner = self.record().ok().and_then(|record| record.owner);
        owner.is_some_and(|owner| !owner.is_running())
    }
}

fn runs() -> PathBuf {
    paths::cache().join("controlplane/runs")
}

/// Ends the control planes of test runs that were killed before they could do it themselves.
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
