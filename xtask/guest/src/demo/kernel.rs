//! What the kernel holds, read from `/proc/net/ip_vs` and by nothing of our own libraries: the
//! demo must not see with the eyes of what it shows.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use guest_wire::View;
use guest_wire::table::{self, Real};

/// How often the kernel is looked at.
const GLANCE: Duration = Duration::from_millis(1);

/// The real servers of the TCP virtual server `target`.
pub(super) fn read(target: SocketAddr) -> anyhow::Result<BTreeMap<SocketAddr, Real>> {
    let text = std::fs::read_to_string("/proc/net/ip_vs").context("the kernel has no IPVS")?;
    Ok(table::parse(&text, target))
}

/// Waits until the kernel holds exactly what `view` wants; real servers of weight 0 do not count.
pub(super) fn wait_for(view: &View, patience: Duration) -> anyhow::Result<()> {
    let wanted = view.weights();
    let deadline = Instant::now() + patience;
    loop {
        let held = table::weights(&read(view.target())?);
        if held == wanted {
            return Ok(());
        }
        if Instant::now() > deadline {
            bail!("after {patience:?} the kernel holds {held:?} instead of {wanted:?}");
        }
        std::thread::sleep(GLANCE);
    }
}

/// Waits until none of `addresses` has an established connection in any virtual server.
pub(super) fn wait_for_drained(addresses: &[SocketAddr], patience: Duration) -> anyhow::Result<()> {
    let deadline = Instant::now() + patience;
    loop {
        let text = std::fs::read_to_string("/proc/net/ip_vs")?;
        let busy: u32 = text
            .lines()
            .filter_map(table::real)
            .filter(|(address, _)| addresses.contains(address))
            .map(|(_, real)| real.active)
            .sum();
        if busy == 0 {
            return Ok(());
        }
        if Instant::now() > deadline {
            bail!("{busy} connections to the leaving pods did not end in {patience:?}");
        }
        std::thread::sleep(GLANCE);
    }
}
