//! Measures how far the proxy lags behind rolling updates that the host writes at a constant rate.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use guest_wire::Record;
use guest_wire::report::Churn;

use super::probe::Probe;
use super::running::RunningProxy;
use crate::output::{log, print_record};

/// Interval between two moves of the probed endpoint.
const FLIPS: Duration = Duration::from_secs(2);

/// Lets `roller` replace endpoints for `duration`, and measures the proxy meanwhile.
pub(crate) fn run(
    endpoints: u32,
    probe: &mut Probe,
    proxy: &RunningProxy,
    roller: SocketAddr,
    duration: Duration,
) -> Result<Churn> {
    print_record(&Record::Mark)?;
    let begin = Instant::now();
    let before = proxy.cpu()?;
    let mut roller = TcpStream::connect(roller).context("the roller")?;
    writeln!(roller, "{}", duration.as_secs())?;
    let lags = lags(probe, begin + duration)?;
    let mut changes = String::new();
    roller.read_to_string(&mut changes)?;
    let elapsed = begin.elapsed().as_secs_f64();
    let cpu = proxy.cpu()?.saturating_sub(before).as_secs_f64();
    print_record(&Record::Mark)?;
    let changes: u32 = changes.trim().parse().context("the roller failed")?;
    let replaced = f64::from(changes * endpoints);
    log(&format!(
        "churn: {:.0} endpoints a second, {:.1} % of a core by this guest's clock",
        replaced / elapsed,
        100.0 * cpu / elapsed
    ));
    Ok(Churn {
        seconds: elapsed,
        changes,
        replaced,
        cpu,
        cpu_share: 1.0,
        immediate_delete: 0.0,
        lags,
    })
}

/// Moves the probed endpoint until `end` and returns the time of each move.
fn lags(probe: &mut Probe, end: Instant) -> Result<Vec<f64>> {
    let mut lags = Vec::new();
    while Instant::now() < end {
        let begin = Instant::now();
        lags.push(probe.flip()?.as_secs_f64());
        thread::sleep(FLIPS.saturating_sub(begin.elapsed()));
    }
    Ok(lags)
}
