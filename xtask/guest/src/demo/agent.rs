//! The agent, as a person would start it.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::Context;

use super::world;

/// Lines of its log that are shown when the demo fails.
const TAIL: usize = 60;

/// The running agent.
pub(super) struct Agent {
    child: Child,
    log: PathBuf,
}

impl Agent {
    /// Starts `ipvs-topo agent` on the cluster in `folder`.
    pub(super) fn start(folder: &Path) -> anyhow::Result<Self> {
        let log = std::env::temp_dir().join("agent.log");
        let output = File::create(&log)?;
        let child = Command::new("ipvs-topo")
            .args(["agent", "--node-name", world::HERE, "--cluster"])
            .arg(folder)
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output)
            .spawn()
            .context("cannot start `ipvs-topo agent`")?;
        Ok(Self { child, log })
    }

    /// Shows the end of the agent's log to the person.
    pub(super) fn show_log(&self) {
        let log = std::fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        crate::output::log("the end of the agent's log:");
        for line in lines
            .get(lines.len().saturating_sub(TAIL)..)
            .unwrap_or_default()
        {
            crate::output::log(line);
        }
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        // The guest is powered off next.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
