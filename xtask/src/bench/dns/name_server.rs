//! Starts the servers, and reads what they cost.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::ensure;

use super::message::{self, connected_to};
use crate::bench::host_process::HostProcess;
use testbed::paths;
use testbed::vm::progress::ProgressLine;

/// How long a server may take to its first answer.
const PATIENCE: Duration = Duration::from_secs(120);

/// A server, which ends when this is dropped.
pub(super) struct RunningNameServer {
    pub(super) name: &'static str,
    pub(super) address: SocketAddr,
    /// Seconds from the start of the process to the first answer.
    pub(super) start: f64,
    process: HostProcess,
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
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let mut process = HostProcess::start(command)?;
        let socket = connected_to(address, Duration::from_millis(100))?;
        // Until a server has read the cluster, it refuses to answer.
        while message::answer(&socket, message::CHANGING_NAME).is_none() {
            ensure!(begin.elapsed() < PATIENCE, "{name} does not answer");
            let exited = process.exited()?;
            ensure!(exited.is_none(), "{name} has exited: {exited:?}");
            std::thread::sleep(Duration::from_millis(5));
        }
        let start = begin.elapsed().as_secs_f64();
        step.done("");
        Ok(Self {
            name,
            address,
            start,
            process,
        })
    }

    pub(super) fn resident_kib(&self) -> anyhow::Result<u64> {
        self.process.resident_kib()
    }

    /// CPU seconds since the start.
    pub(super) fn cpu(&self) -> anyhow::Result<f64> {
        Ok(self.process.cpu_time()?.as_secs_f64())
    }
}

/// Returns an address of which no program uses the port.
fn free_address() -> anyhow::Result<SocketAddr> {
    Ok(UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?)
}

fn configuration_file() -> PathBuf {
    paths::cache().join(format!("bench-dns-{}.Corefile", std::process::id()))
}
