//! A node proxy under measurement: how it is started, when it has programmed everything, what it costs.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use guest_wire::ProxyKind;
use guest_wire::report::Memory;

use crate::bench::{process, scrape};
use crate::output;

const METRICS: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 10249);
const HEALTH: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 10256);
const LOG: &str = "/tmp/proxy.log";
/// kube-proxy's ipvs mode may need most of an hour for 10,000 Services under emulation.
const LIMIT: Duration = Duration::from_secs(4200);
const POLL: Duration = Duration::from_millis(50);
/// How often it is told how far a start has come; counting costs a second or two of what is measured.
const PROGRESS: Duration = Duration::from_secs(180);
/// A proxy rests when it used less CPU than this in a second, three times in a row.
const REST: Duration = Duration::from_millis(30);
/// `USER_HZ`, the unit of times in `/proc/PID/stat`.
const TICKS: u32 = 100;

fn command(kind: ProxyKind, binary: &Path, kubeconfig: &Path) -> Command {
    let mut command = Command::new(binary);
    let mode = match kind {
        ProxyKind::IpvsTopo => {
            command
                .args(["agent", "--node-name", "n0", "--kubeconfig"])
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
        ])
        .arg(format!("--proxy-mode={mode}"))
        .arg(format!("--kubeconfig={}", kubeconfig.display()));
    command
}

/// How many Services (nftables) or real servers are in the kernel.
fn entries(kind: ProxyKind) -> Result<usize> {
    match kind {
        ProxyKind::Nftables => {
            let map = ["list", "map", "ip", "kube-proxy", "service-ips"];
            count("nft", &map, "goto")
        }
        ProxyKind::IpvsTopo | ProxyKind::Ipvs => count("ipvsadm", &["-Sn"], "-a "),
    }
}

/// Whether everything that the API server lists is in the kernel.
fn is_ready(kind: ProxyKind) -> bool {
    if kind == ProxyKind::IpvsTopo {
        return scrape::get(HEALTH, "/healthz").is_ok();
    }
    // kube-proxy's first sync begins when its lists are complete; each family has its own.
    let series = "kubeproxy_sync_proxy_rules_duration_seconds_count{ip_family=\"IPv4\"}";
    scrape::metrics(METRICS)
        .and_then(|metrics| metrics.get(series))
        .is_ok_and(|syncs| syncs >= 1.0)
}

/// A running proxy; killed when dropped.
pub(crate) struct Proxy {
    kind: ProxyKind,
    child: Child,
}

impl Proxy {
    /// Starts it and waits until everything is in the kernel.
    pub(crate) fn start(kind: ProxyKind, binary: &Path, kubeconfig: &Path) -> Result<Self> {
        let log = fs::File::create(LOG)?;
        let child = command(kind, binary, kubeconfig)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .with_context(|| format!("cannot start {}", binary.display()))?;
        let mut proxy = Self { kind, child };
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
            if let Some(status) = proxy.child.try_wait()? {
                bail!("{} ended ({status}):\n{}", kind.name(), end_of_log());
            }
            if begin.elapsed() > LIMIT {
                bail!(
                    "{} took longer than {LIMIT:?}:\n{}",
                    kind.name(),
                    end_of_log()
                );
            }
            sleep(POLL);
        }
        Ok(proxy)
    }

    /// Fails unless the kernel holds what the cluster asks for.
    pub(crate) fn check(&self, services: u32, endpoints: u32) -> Result<()> {
        let found = entries(self.kind)?;
        let wanted = match self.kind {
            ProxyKind::Nftables => services,
            ProxyKind::IpvsTopo | ProxyKind::Ipvs => services * endpoints,
        };
        ensure!(
            found >= usize::try_from(wanted)?,
            "{} said that it was ready with {found} of {wanted} entries in the kernel:\n{}",
            self.kind.name(),
            end_of_log()
        );
        Ok(())
    }

    /// CPU time so far, that of finished children included.
    pub(crate) fn cpu(&self) -> Result<Duration> {
        let own = process::read(self.child.id())?;
        let path = format!("/proc/{}/stat", self.child.id());
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

    /// Waits until it rests.
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
            ensure!(begin.elapsed() < LIMIT, "{} never rests", self.kind.name());
        }
        Ok(())
    }

    /// Its memory now.
    pub(crate) fn memory(&self) -> Result<Memory> {
        process::memory(self.child.id())
    }

    /// Ends it without a warning.
    pub(crate) fn kill(mut self) -> Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        // Dead already is as good as killed.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Requests that the running proxy sent to the API server so far, as it counts them itself.
pub(crate) fn requests() -> Result<f64> {
    Ok(scrape::metrics(METRICS)?.sum("rest_client_requests_total"))
}

/// How often a program's output holds `word`.
fn count(program: &str, arguments: &[&str], word: &str) -> Result<usize> {
    let output = Command::new(program)
        .args(arguments)
        .output()
        .context(program.to_owned())?;
    Ok(String::from_utf8_lossy(&output.stdout)
        .matches(word)
        .count())
}

fn end_of_log() -> String {
    let text = fs::read_to_string(LOG).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    let end = lines.get(lines.len().saturating_sub(20)..);
    end.unwrap_or_default().join("\n")
}
