//! Starts the agent as an operator does.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::Context;

use super::network;
use crate::child::KillOnDrop;
use crate::output;

/// The connections of the demo, each for two minutes in the kernel's table, are more than a guest's default table holds.
const CONNECTION_TRACKING: [&str; 2] = ["--conntrack-max-per-core", "32768"];

pub(super) struct Agent {
    _child: KillOnDrop,
    log: PathBuf,
}

impl Agent {
    /// Starts `ipvs-topo agent` on the cluster in `folder`.
    pub(super) fn start(folder: &Path) -> anyhow::Result<Self> {
        let log = std::env::temp_dir().join("agent.log");
        let output = File::create(&log)?;
        let child = Command::new("ipvs-topo")
            .args(["agent", "--node-name", network::NODE, "--cluster"])
            .arg(folder)
            .args(CONNECTION_TRACKING)
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output)
            .spawn()
            .context("cannot start `ipvs-topo agent`")?;
        Ok(Self {
            _child: KillOnDrop(child),
            log,
        })
    }

    /// Prints the end of the agent's log.
    pub(super) fn show_log(&self) {
        output::log("the end of the agent's log:");
        output::log(&output::tail(&self.log));
    }
}
