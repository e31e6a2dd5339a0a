//! Reads what the kernel holds from `/proc/net/ip_vs`, independently of the libraries that the demo shows.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use guest_wire::View;
use guest_wire::proc_ip_vs::{self, RealServer};

const POLL_INTERVAL: Duration = Duration::from_millis(1);

/// Reads the real servers of the TCP virtual server `target`.
pub(super) fn read(target: SocketAddr) -> anyhow::Result<BTreeMap<SocketAddr, RealServer>> {
    let text = std::fs::read_to_string("/proc/net/ip_vs").context("the kernel has no IPVS")?;
    Ok(proc_ip_vs::parse(&text, target))
}

/// Waits until the kernel holds exactly the weights of `view`; ignores real servers of weight 0.
pub(super) fn wait_for(view: &View, timeout: Duration) -> anyhow::Result<()> {
    let wanted = view.weights();
    let deadline = Instant::now() + timeout;
    loop {
        let held = proc_ip_vs::weights(&read(view.target())?);
        if held == wanted {
            return Ok(());
        }
        if Instant::now() > deadline {
            bail!("after {timeout:?} the kernel holds {held:?} instead of {wanted:?}");
        }
        std::thread::sleep(POLL_INTERVAL);
    }
}

/// Waits until none of `addresses` has an established connection in any virtual server.
pub(super) fn wait_for_drained(addresses: &[SocketAddr], timeout: Duration) -> anyhow::Result<()> {
    let deadline = Instant::now() + timeout;
    loop {
        let text = std::fs::read_to_string("/proc/net/ip_vs")?;
        let busy: u32 = text
            .lines()
            .filter_map(proc_ip_vs::real_server)
            .filter(|(address, _)| addresses.contains(address))
            .map(|(_, real)| real.active)
            .sum();
        if busy == 0 {
            return Ok(());
        }
        if Instant::now() > deadline {
            bail!("{busy} connections to the leaving pods did not end in {timeout:?}");
        }
        std::thread::sleep(POLL_INTERVAL);
    }
}
