//! Replaces endpoints of other Services while an endpoint changes.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpStream};
use std::time::{Duration, Instant};

use anyhow::Context as _;

use crate::bench::kubernetes::ENDPOINTS;

const DURATION: Duration = Duration::from_secs(20);

/// A rolling update, which `guest bench roll` writes.
pub(super) struct RollingUpdate {
    begin: Instant,
    roller: TcpStream,
}

impl RollingUpdate {
    pub(super) fn begin(port: u16) -> anyhow::Result<Self> {
        let begin = Instant::now();
        let mut roller = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).context("the roller")?;
        writeln!(roller, "{}", DURATION.as_secs())?;
        Ok(Self { begin, roller })
    }

    pub(super) fn is_running(&self) -> bool {
        self.begin.elapsed() < DURATION
    }

    /// Waits for the end, and returns how many endpoints it has replaced in a second.
    pub(super) fn end(mut self) -> anyhow::Result<f64> {
        let mut slices = String::new();
        self.roller.read_to_string(&mut slices)?;
        let slices: u32 = slices.trim().parse().context("the roller failed")?;
        Ok(f64::from(slices * ENDPOINTS) / self.begin.elapsed().as_secs_f64())
    }
}
