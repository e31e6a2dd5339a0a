//! The network namespace that a measurement runs in, and a quiet machine around it.

use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use benches::Shape;

use super::process;

/// How long one look at the machine's idleness takes.
const LOOK: Duration = Duration::from_millis(200);
/// Waiting longer than this for a quiet machine is pointless.
const LIMIT: Duration = Duration::from_secs(20);

/// The node that the measured agent is.
pub(crate) fn node_name() -> String {
    Shape::default().node(0).name
}

/// Brings `lo` up and gives it the node's address, from which the agent's routes send.
pub(crate) fn prepare() -> Result<()> {
    let address = Shape::default().node(0).address;
    ip(&["link", "set", "lo", "up"])?;
    ip(&["address", "add", &format!("{address}/32"), "dev", "lo"])?;
    settle()
}

/// Waits until the machine is idle: a namespace that was left is emptied by the kernel in the background.
pub(crate) fn settle() -> Result<()> {
    let begin = Instant::now();
    while begin.elapsed() < LIMIT {
        let before = process::idle_ticks()?;
        sleep(LOOK);
        let ticks = process::idle_ticks()?.saturating_sub(before);
        // Two CPUs at 100 ticks a second give 40 ticks in this time when both are idle.
        if ticks >= 36 {
            break;
        }
    }
    Ok(())
}

fn ip(arguments: &[&str]) -> Result<()> {
    let status = Command::new("ip").args(arguments).status().context("ip")?;
    ensure!(status.success(), "`ip {}` failed", arguments.join(" "));
    Ok(())
}
