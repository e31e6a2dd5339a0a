//! An empty kernel, and how long it takes to fill it: by the agent, and by the bare loop.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Result, ensure};
use guest_wire::report::{Memory, Start};
use serde::{Deserialize, Serialize};

use super::agent::{self, Agent};
use super::bare::Bare;
use super::{messages, namespace, process};

/// `guest bench cold`: the agent fills an empty kernel.
#[derive(clap::Args)]
pub(crate) struct ColdArgs {
    /// The agent's binary.
    #[arg(long)]
    agent: PathBuf,
    /// The cluster.
    #[arg(long)]
    cluster: PathBuf,
    /// Where to leave what the kernel then holds, as messages for the bare loop.
    #[arg(long)]
    messages: PathBuf,
}

/// `guest bench floor`: the bare loop fills an empty kernel.
#[derive(clap::Args)]
pub(crate) struct FloorArgs {
    /// What `guest bench cold` left.
    #[arg(long)]
    messages: PathBuf,
}

/// What `guest bench cold` found.
#[derive(Serialize, Deserialize)]
pub(crate) struct Cold {
    /// The start.
    pub(crate) start: Start,
    /// Memory of the settled agent.
    pub(crate) memory: Memory,
}

/// Lets the agent fill this namespace's empty table.
pub(crate) fn cold(args: &ColdArgs) -> Result<Cold> {
    namespace::prepare()?;
    let agent = Agent::start(&agent::Start {
        binary: &args.agent,
        cluster: &args.cluster,
        check_seconds: agent::NO_CHECK,
        log: args.messages.with_extension("log"),
    })?;
    let start = agent.start_report()?;
    if !args.messages.exists() {
        capture(&args.messages, start.writes)?;
    }
    // What was allocated for the start only has a moment to be given back.
    sleep(Duration::from_secs(1));
    let memory = process::memory(agent.pid())?;
    agent.kill()?;
    Ok(Cold { start, memory })
}

/// Lets the bare loop fill this namespace's empty table; seconds.
pub(crate) fn floor(args: &FloorArgs) -> Result<f64> {
    namespace::prepare()?;
    let datagrams = messages::read(&args.messages)?;
    Ok(Bare::open()?.send(&datagrams)?.as_secs_f64())
}

/// Writes what the kernel holds as the messages that would make it so again, in the agent's own order.
fn capture(path: &Path, writes: u64) -> Result<()> {
    let (datagrams, commands) = messages::capture()?;
    ensure!(
        commands == writes,
        "the agent sent {writes} commands to IPVS, but what it made needs {commands}"
    );
    let partial = path.with_extension("partial");
    messages::write(&partial, &datagrams)?;
    fs::rename(partial, path)?;
    Ok(())
}
