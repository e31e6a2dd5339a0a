//! Prepares the network namespace of a measurement, and waits until the machine is idle.

use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use benches::Shape;

use super::process;

/// Length of one sample of the idle time.
const SAMPLE: Duration = Duration::from_millis(200);
/// The measurement starts after this time even if the machine is busy.
const LIMIT: Duration = Duration::from_secs(20);

pub(crate) fn node_name() -> String {
    Shape::default().node(0).name
}

/// Brings `lo` up and adds the node's address, the source address of the agent's routes.
pub(crate) fn prepare() -> Result<()> {
    let address = Shape::default().node(0).address;
    ip(&["link", "set", "lo", "up"])?;
    ip(&["address", "add", &format!("{address}/32"), "dev", "lo"])?;
    settle()
}

/// Waits until the machine is idle: the kernel cleans up the previous namespace in the background.
pub(crate) fn settle() -> Result<()> {
    let begin = Instant::now();
    while begin.elapsed() < LIMIT {
        let before = process::idle_ticks()?;
        sleep(SAMPLE);
        let ticks = process::idle_ticks()?.saturating_sub(before);
        // Two idle CPUs at 100 ticks a second count 40 ticks in this time.
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
