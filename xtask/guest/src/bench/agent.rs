//! Starts the real agent, waits until it serves, and kills it.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use benches::shape::SERVICE_CIDR;
use guest_wire::report;

use super::namespace;
use super::scrape::{self, Samples};
use crate::child::KillOnDrop;
use crate::output::tail;

/// The address of the agent's metrics.
const METRICS: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 10249);
/// The address of its health endpoint.
const HEALTH: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 10256);
/// A start at 10,000 x 10 takes some ten seconds under emulation.
const START_LIMIT: Duration = Duration::from_secs(180);
/// Rare enough not to disturb the measurement, and short beside a start.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// A check period so long that no check falls into a measurement, in seconds.
pub(crate) const NO_CHECK: u32 = 3_600;

/// A running agent; killed when dropped.
pub(crate) struct Agent {
    child: KillOnDrop,
    metrics: SocketAddr,
    /// Time from its start until `/healthz` answers 200; late by at most one poll.
    pub(crate) started_in: Duration,
}

pub(crate) struct StartOptions<'a> {
    pub(crate) binary: &'a Path,
    pub(crate) cluster: &'a Path,
    /// The period of the check of the whole kernel table, in seconds.
    pub(crate) check_seconds: u32,
    pub(crate) log: PathBuf,
}

impl Agent {
    /// Starts the agent and waits until it has programmed everything.
    pub(crate) fn start(start: &StartOptions<'_>) -> Result<Self> {
        let log = std::fs::File::create(&start.log)?;
        let begin = Instant::now();
        let child = Command::new(start.binary)
            .arg("agent")
            .arg("--cluster")
            .arg(start.cluster)
            .args(["--node-name", &namespace::node_name()])
            .args(["--service-cidr", SERVICE_CIDR])
            .args(["--check-period", &format!("{}s", start.check_seconds)])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .with_context(|| format!("cannot start {}", start.binary.display()))?;
        let mut agent = Self {
            child: KillOnDrop(child),
            metrics: METRICS,
            started_in: Duration::ZERO,
        };
        agent.wait_until_ready(begin, &start.log)?;
        Ok(agent)
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.0.id()
    }

    pub(crate) fn metrics(&self) -> Result<Samples> {
        scrape::metrics(self.metrics)
    }

    /// Reads the times of its start from its metrics.
    pub(crate) fn start_report(&self) -> Result<report::AgentStart> {
        let metrics = self.metrics()?;
        let phase = |name| metrics.get(&format!("ipvs_topo_start_seconds{{phase=\"{name}\"}}"));
        Ok(report::AgentStart {
            read: phase("read")?,
            dump: phase("dump")?,
            compute: phase("compute")?,
            apply: phase("apply")?,
            pass: phase("pass")?,
            ready: self.started_in.as_secs_f64(),
            writes: whole(metrics.get("ipvs_topo_start_writes")?),
        })
    }

    fn wait_until_ready(&mut self, begin: Instant, log: &Path) -> Result<()> {
        loop {
            if scrape::get(HEALTH, "/healthz").is_ok() {
                self.started_in = begin.elapsed();
                return Ok(());
            }
            if let Some(status) = self.child.0.try_wait()? {
                bail!("the agent ended ({status}):\n{}", tail(log));
            }
            if begin.elapsed() > START_LIMIT {
                bail!(
                    "the agent did not get ready in {START_LIMIT:?}:\n{}",
                    tail(log)
                );
            }
            sleep(POLL_INTERVAL);
        }
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a counter is a whole number, never negative and far below 2^52"
)]
fn whole(counter: f64) -> u64 {
    counter as u64
}
