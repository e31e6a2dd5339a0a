//! Starts the servers, and reads what they cost.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};

use super::message::{self, connected_to};
use testbed::paths;
use testbed::vm::progress::ProgressLine;

/// How long a server may take to its first answer.
const PATIENCE: Duration = Duration::from_secs(120);

/// The kernel counts CPU time in hundredths of a second for programs.
const TICKS: f64 = 100.0;

/// A running server; killed when dropped.
pub(super) struct RunningNameServer {
    pub(super) name: &'static str,
    pub(super) address: SocketAddr,
    /// Seconds from the start of the process to the first answer.
    pub(super) start: f64,
    child: Child,
}

impl RunningNameServer {
    pub(super) fn ipvs_topo(program: &Path, kubeconfig: &Path) -> anyhow::Result<Self> {
        let address = free_address()?;
        let mut command = Command::new(program);
        command.args(["dns", "--node", "n0", "--listen", &address.to_string()]);
        command.arg("--kubeconfig").arg(kubeconfig);
        Self::start("ipvs-topo", address, &mut command)
    }

    /// Starts it as kubeadm configures it, without its cache: that would answer repeated questions only, and late.
    pub(super) fn coredns(program: &Path, kubeconfig: &Path) -> anyhow::Result<Self> {
        let address = free_address()?;
        let configuration = format!(
            ".:{} {{\n bind 127.0.0.1\n errors\n kubernetes cluster.local in-addr.arpa ip6.arpa {{\n  kubeconfig {}\n  \
             pods insecure\n  fallthrough in-addr.arpa ip6.arpa\n  ttl 5\n  startup_timeout 60s\n }}\n loadbalance\n}}\n",
            address.port(),
            kubeconfig.display()
        );
        let path = configuration_file();
        fs::write(&path, configuration)?;
        let mut command = Command::new(program);
        command.arg("-conf").arg(&path);
        let server = Self::start("CoreDNS", address, &mut command);
        fs::remove_file(path)?;
        server
    }

    fn start(
        name: &'static str,
        address: SocketAddr,
        command: &mut Command,
    ) -> anyhow::Result<Self> {
        let step = ProgressLine::begin(format!("starting {name}"));
        let begin = Instant::now();
        let child = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .with_context(|| format!("cannot start {name}"))?;
        let mut server = Self {
            name,
            address,
            start: 0.0,
            child,
        };
        let socket = connected_to(address, Duration::from_millis(100))?;
        // Until a server has read the cluster, it refuses to answer.
        while message::answer(&socket, message::CHANGING_NAME).is_none() {
            ensure!(begin.elapsed() < PATIENCE, "{name} does not answer");
            let exited = server.child.try_wait()?;
            ensure!(exited.is_none(), "{name} has exited: {exited:?}");
            std::thread::sleep(Duration::from_millis(5));
        }
        server.start = begin.elapsed().as_secs_f64();
        step.done("");
        Ok(server)
    }

    pub(super) fn resident_kib(&self) -> anyhow::Result<u64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let resident = resident.and_then(|text| text.trim().strip_suffix(" kB")?.parse().ok());
        resident.context("no VmRSS")
    }

    /// CPU seconds since the start.
    pub(super) fn cpu(&self) -> anyhow::Result<f64> {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.child.id()))?;
        // The name of the program may contain spaces.
        let fields = stat.rsplit_once(')').context("no name in stat")?.1;
        let fields: Vec<&str> = fields.split_whitespace().collect();
        let of = |at: usize| fields.get(at).and_then(|text| text.parse::<u32>().ok());
        let (user, system) = of(11).zip(of(12)).context("no CPU time in stat")?;
        Ok(f64::from(user + system) / TICKS)
    }
}

impl Drop for RunningNameServer {
    fn drop(&mut self) {
        // It may have exited already.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Returns an address of which no program uses the port.
fn free_address() -> anyhow::Result<SocketAddr> {
    Ok(UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?)
}

fn configuration_file() -> PathBuf {
    paths::cache().join(format!("bench-dns-{}.Corefile", std::process::id()))
}
