//! Starts the real agent, waits until it serves, and ends it.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use benches::shape::SERVICE_CIDR;
use guest_wire::report;

use super::namespace;
use super::scrape::{self, Samples};

/// Where the agent tells its metrics.
const METRICS: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 10249);
/// Where it tells whether it serves.
const HEALTH: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 10256);
/// A start at 10,000 x 10 takes some ten seconds under emulation.
const START_LIMIT: Duration = Duration::from_secs(180);
/// How often readiness is asked for: rarely enough not to disturb, often enough to be near.
const POLL: Duration = Duration::from_millis(20);

/// A period of checks so long that none falls into a measurement, in seconds.
pub(crate) const NO_CHECK: u32 = 3_600;

/// A running agent; killed when dropped.
pub(crate) struct Agent {
    child: Child,
    metrics: SocketAddr,
    /// From its start until it said that it serves, seen from outside; late by at most one poll.
    pub(crate) started_in: Duration,
}

/// How an agent is started.
pub(crate) struct Start<'a> {
    /// The binary.
    pub(crate) binary: &'a Path,
    /// The cluster to read.
    pub(crate) cluster: &'a Path,
    /// How often the agent compares the whole kernel table, in seconds.
    pub(crate) check_seconds: u32,
    /// Where its log goes.
    pub(crate) log: PathBuf,
}

impl Agent {
    /// Starts the agent and waits until everything is in the kernel.
    pub(crate) fn start(start: &Start<'_>) -> Result<Self> {
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
            child,
            metrics: METRICS,
            started_in: Duration::ZERO,
        };
        agent.wait_until_ready(begin, &start.log)?;
        Ok(agent)
    }

    /// Its process id.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Its metrics now.
    pub(crate) fn metrics(&self) -> Result<Samples> {
        scrape::metrics(self.metrics)
    }

    /// How its start went.
    pub(crate) fn start_report(&self) -> Result<report::Start> {
        let metrics = self.metrics()?;
        let phase = |name| metrics.get(&format!("ipvs_topo_start_seconds{{phase=\"{name}\"}}"));
        Ok(report::Start {
            read: phase("read")?,
            dump: phase("dump")?,
            compute: phase("compute")?,
            apply: phase("apply")?,
            pass: phase("pass")?,
            ready: self.started_in.as_secs_f64(),
            writes: whole(metrics.get("ipvs_topo_start_writes")?),
        })
    }

    /// Ends it without a warning, as a crash or an out-of-memory kill would.
    pub(crate) fn kill(mut self) -> Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    fn wait_until_ready(&mut self, begin: Instant, log: &Path) -> Result<()> {
        loop {
            if scrape::get(HEALTH, "/healthz").is_ok() {
                self.started_in = begin.elapsed();
                return Ok(());
            }
            if let Some(status) = self.child.try_wait()? {
                bail!("the agent ended ({status}):\n{}", tail(log));
            }
            if begin.elapsed() > START_LIMIT {
                bail!(
                    "the agent did not get ready in {START_LIMIT:?}:\n{}",
                    tail(log)
                );
            }
            sleep(POLL);
        }
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        // Dead already is as good as killed.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// The last lines of a log.
fn tail(log: &Path) -> String {
    let text = std::fs::read_to_string(log).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    lines
        .get(lines.len().saturating_sub(20)..)
        .unwrap_or_default()
        .join("\n")
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a counter is a whole number, never negative and far below 2^52"
)]
fn whole(counter: f64) -> u64 {
    counter as u64
}
