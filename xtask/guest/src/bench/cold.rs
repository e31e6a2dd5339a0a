//! Measures how long the agent and the bare loop take to fill an empty kernel.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Result, ensure};
use guest_wire::report::{AgentStart, ResidentMemory};
use serde::{Deserialize, Serialize};

use super::agent::{self, Agent};
use super::bare_socket::BareSocket;
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
    /// File for the messages with which the bare loop makes the same tables.
    #[arg(long)]
    messages: PathBuf,
}

/// `guest bench floor`: the bare loop fills an empty kernel.
#[derive(clap::Args)]
pub(crate) struct FloorArgs {
    /// The file that `guest bench cold` wrote.
    #[arg(long)]
    messages: PathBuf,
}

/// The readings of `guest bench cold`.
#[derive(Serialize, Deserialize)]
pub(crate) struct Cold {
    pub(crate) start: AgentStart,
    pub(crate) memory: ResidentMemory,
}

/// Starts the agent on the empty table of this namespace.
pub(crate) fn cold(args: &ColdArgs) -> Result<Cold> {
    namespace::prepare()?;
    let agent = Agent::start(&agent::StartOptions {
        binary: &args.agent,
        cluster: &args.cluster,
        check_seconds: agent::NO_CHECK,
        log: args.messages.with_extension("log"),
    })?;
    let start = agent.start_report()?;
    if !args.messages.exists() {
        capture(&args.messages, start.writes)?;
    }
    // The allocator needs a moment to return memory that only the start used.
    sleep(Duration::from_secs(1));
    let memory = process::memory(agent.pid())?;
    drop(agent);
    Ok(Cold { start, memory })
}

/// Fills the empty table of this namespace with the bare loop and returns the seconds it took.
pub(crate) fn floor(args: &FloorArgs) -> Result<f64> {
    namespace::prepare()?;
    let datagrams = messages::read(&args.messages)?;
    Ok(BareSocket::open()?.send(&datagrams)?.as_secs_f64())
}

/// Writes the messages that make an empty kernel equal to this one, in the order in which the agent sends them.
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
