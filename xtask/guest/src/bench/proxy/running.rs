//! Starts a node proxy, waits until it has programmed everything, and reads what it costs.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use guest_wire::report::ResidentMemory;
use guest_wire::{ProxyKind, ServiceType};

use crate::bench::{process, scrape};
use crate::child::KillOnDrop;
use crate::output;

const METRICS: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 10249);
const HEALTH: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 10256);
const LOG: &str = "/tmp/proxy.log";
/// Where node ports are served: only at the address towards the API server, or each proxy would select others.
const NODE_PORT_ADDRESSES: &str = "--nodeport-addresses=10.0.2.0/24";
/// kube-proxy's ipvs mode may need more than an hour for 10,000 load balancers under emulation.
const LIMIT: Duration = Duration::from_secs(7200);
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// Interval of progress lines during a start; counting entries costs a second or two of the measured time.
const PROGRESS: Duration = Duration::from_secs(180);
/// A proxy is idle when it used less CPU than this in a second, three times in a row.
const REST: Duration = Duration::from_millis(30);
/// `USER_HZ`, the unit of times in `/proc/PID/stat`.
const TICKS: u32 = 100;

fn command(kind: ProxyKind, binary: &Path, kubeconfig: &Path) -> Command {
    let mut command = Command::new(binary);
    let mode = match kind {
        ProxyKind::IpvsTopo => {
            command
                .args(["agent", "--node-name", "n0", NODE_PORT_ADDRESSES])
                .arg("--kubeconfig")
                .arg(kubeconfig);
            return command;
        }
        ProxyKind::Ipvs => "ipvs",
        ProxyKind::Nftables => "nftables",
    };
    command
        .args([
            "kube-proxy",
            "--hostname-override=n0",
            "--conntrack-max-per-core=0",
            NODE_PORT_ADDRESSES,
        ])
        .arg(format!("--proxy-mode={mode}"))
        .arg(format!("--kubeconfig={}", kubeconfig.display()));
    command
}

/// Counts the addresses of Services (nftables) or real servers in the kernel.
fn entries(kind: ProxyKind) -> Result<usize> {
    match kind {
        ProxyKind::Nftables => {
            let map = ["list", "map", "ip", "kube-proxy", "service-ips"];
            count("nft", &map, "goto")
        }
        ProxyKind::IpvsTopo | ProxyKind::Ipvs => count("ipvsadm", &["-Sn"], "-a "),
    }
}

/// Returns whether everything that the API server lists is in the kernel.
fn is_ready(kind: ProxyKind) -> bool {
    if kind == ProxyKind::IpvsTopo {
        return scrape::get(HEALTH, "/healthz").is_ok();
    }
    // kube-proxy's first sync begins when its lists are complete; each IP family has its own.
    let series = "kubeproxy_sync_proxy_rules_duration_seconds_count{ip_family=\"IPv4\"}";
    scrape::metrics(METRICS)
        .and_then(|metrics| metrics.get(series))
        .is_ok_and(|syncs| syncs >= 1.0)
}

/// A running proxy; killed when dropped.
pub(crate) struct RunningProxy {
    kind: ProxyKind,
    child: KillOnDrop,
}

impl RunningProxy {
    /// Starts it and waits until it has programmed everything.
    pub(crate) fn start(kind: ProxyKind, binary: &Path, kubeconfig: &Path) -> Result<Self> {
        let log = fs::File::create(LOG)?;
        let child = command(kind, binary, kubeconfig)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .with_context(|| format!("cannot start {}", binary.display()))?;
        let mut proxy = Self {
            kind,
            child: KillOnDrop(child),
        };
        let begin = Instant::now();
        let mut progress = PROGRESS;
        while !is_ready(kind) {
            if begin.elapsed() > progress {
                let (minutes, entries) = (progress.as_secs() / 60, entries(kind)?);
                output::log(&format!(
                    "{}: has not started after {minutes} min; {entries} entries in the kernel",
                    kind.name()
                ));
                progress += PROGRESS;
            }
            if let Some(status) = proxy.child.0.try_wait()? {
                bail!(
                    "{} ended ({status}):\n{}",
                    kind.name(),
                    output::tail(Path::new(LOG))
                );
            }
            if begin.elapsed() > LIMIT {
                bail!(
                    "{} took longer than {LIMIT:?}:\n{}",
                    kind.name(),
                    output::tail(Path::new(LOG))
                );
            }
            sleep(POLL_INTERVAL);
        }
        Ok(proxy)
    }

    /// Fails unless the kernel holds every Service and endpoint of the cluster.
    pub(crate) fn check(
        &self,
        services: u32,
        service_type: ServiceType,
        endpoints: u32,
    ) -> Result<()> {
        let found = entries(self.kind)?;
        let wanted = match (self.kind, service_type) {
            // Node ports are in another map.
            (ProxyKind::Nftables, ServiceType::LoadBalancer) => 2 * services,
            (ProxyKind::Nftables, _) => services,
            (ProxyKind::IpvsTopo | ProxyKind::Ipvs, _) => {
                services * service_type.frontends() * endpoints
            }
        };
        ensure!(
            found >= usize::try_from(wanted)?,
            "{} said that it was ready with {found} of {wanted} entries in the kernel:\n{}",
            self.kind.name(),
            output::tail(Path::new(LOG))
        );
        Ok(())
    }

    /// Returns its CPU time since its start, with that of exited children.
    pub(crate) fn cpu(&self) -> Result<Duration> {
        let own = process::read(self.child.0.id())?;
        let path = format!("/proc/{}/stat", self.child.0.id());
        let stat = fs::read_to_string(&path).with_context(|| path.clone())?;
        let (_, fields) = stat.rsplit_once(')').context(path)?;
        let children: u32 = fields
            .split_whitespace()
            .skip(13)
            .take(2)
            .filter_map(|ticks| ticks.parse::<u32>().ok())
            .sum();
        Ok(own.first() + own.others() + Duration::from_secs(1) * children / TICKS)
    }

    /// Waits until it is idle.
    pub(crate) fn settle(&self) -> Result<()> {
        let begin = Instant::now();
        let mut quiet = 0;
        let mut before = self.cpu()?;
        while quiet < 3 {
            sleep(Duration::from_secs(1));
            let now = self.cpu()?;
            quiet = if now.saturating_sub(before) < REST {
                quiet + 1
            } else {
                0
            };
            before = now;
            ensure!(
                begin.elapsed() < LIMIT,
                "{} never becomes idle",
                self.kind.name()
            );
        }
        Ok(())
    }

    pub(crate) fn memory(&self) -> Result<ResidentMemory> {
        process::memory(self.child.0.id())
    }
}

/// Reads from the proxy's metrics how many requests it has sent to the API server.
pub(crate) fn requests() -> Result<f64> {
    Ok(scrape::metrics(METRICS)?.sum("rest_client_requests_total"))
}

/// Counts how often a program's output contains `word`.
fn count(program: &str, arguments: &[&str], word: &str) -> Result<usize> {
    let output = Command::new(program)
        .args(arguments)
        .output()
        .context(program.to_owned())?;
    Ok(String::from_utf8_lossy(&output.stdout)
        .matches(word)
        .count())
}
