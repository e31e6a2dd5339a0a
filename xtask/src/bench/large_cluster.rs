//! A control plane with many Nodes, and a controller beside it.

use std::fmt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context as _, ensure};
use serde::{Deserialize, Serialize};
use testbed::cargo;
use testbed::controlplane::{ScopedControlPlane, Version};
use testbed::vm::command;
use testbed::vm::progress::ProgressLine;

use super::host_process::HostProcess;
use super::kubernetes;

pub(super) struct Programs {
    /// Creates objects, and watches them.
    client: PathBuf,
    controller: PathBuf,
}

impl Programs {
    pub(super) fn build() -> anyhow::Result<Self> {
        let step = ProgressLine::begin("building the controller and the watching client");
        let [client, controller] = [
            ("--example", "large_cluster"),
            ("--bin", "ipvs-topo-controller"),
        ]
        .map(|(kind, name)| cargo::build(cargo::whole("build").args([kind, name]), name));
        let programs = Self {
            client: client?,
            controller: controller?,
        };
        step.done("");
        Ok(programs)
    }
}

/// A control plane with our definitions.
pub(super) struct LargeCluster(ScopedControlPlane);

impl LargeCluster {
    pub(super) fn start() -> anyhow::Result<Self> {
        let plane = ScopedControlPlane::start(Version::Newest)?;
        kubernetes::define(&plane)?;
        Ok(Self(plane))
    }

    /// Starts the controller.
    pub(super) fn run(&self, programs: &Programs, flags: &[&str]) -> anyhow::Result<HostProcess> {
        let mut serving = Command::new(&programs.controller);
        serving.arg("--kubeconfig").arg(self.0.kubeconfig());
        serving.args(["--namespace", "default", "--bind-address", "127.0.0.1:0"]);
        HostProcess::start(serving.args(flags).stderr(Stdio::null()))
    }

    /// Runs a command of the client to its end, and returns its output.
    pub(super) fn client(
        &self,
        programs: &Programs,
        what: &str,
        numbers: &[u64],
    ) -> anyhow::Result<Vec<u8>> {
        let mut client = Command::new(&programs.client);
        client.arg(self.0.kubeconfig()).arg(what);
        client.args(numbers.iter().map(u64::to_string));
        let output = client.stderr(Stdio::inherit()).output()?;
        ensure!(output.status.success(), "the client failed: {what}");
        Ok(output.stdout)
    }

    /// Reads the size of etcd's database, with free pages and the revisions of the last minutes.
    pub(super) fn etcd_bytes(&self) -> anyhow::Result<u64> {
        let metrics = command::output(self.0.part("kubectl").args(["get", "--raw=/metrics"]))?;
        let mut lines = metrics.lines();
        let size = lines.find(|line| line.starts_with("apiserver_storage_size_bytes{"));
        let size = size.and_then(|line| line.rsplit(' ').next()?.parse::<f64>().ok());
        // Whole bytes, printed with an exponent.
        let size = size.map(|size| format!("{size:.0}"));
        size.and_then(|size| size.parse().ok())
            .context("the API server's metrics have no apiserver_storage_size_bytes")
    }

    pub(super) fn end(self) -> anyhow::Result<()> {
        self.0.end()
    }
}

/// What the controller, built with debug information, used since its start.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct ControllerCosts {
    /// Peak memory in KiB.
    controller_peak_kib: u64,
    /// CPU time.
    controller_cpu_ms: u64,
}

impl fmt::Display for ControllerCosts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the controller used at most {} of memory, and {} ms of CPU time",
            amount(self.controller_peak_kib * 1_024),
            self.controller_cpu_ms
        )
    }
}

impl ControllerCosts {
    pub(super) fn of(controller: &HostProcess) -> anyhow::Result<Self> {
        Ok(Self {
            controller_peak_kib: controller.peak_kib()?,
            controller_cpu_ms: u64::try_from(controller.cpu_time()?.as_millis())?,
        })
    }
}

/// Formats an amount in a suitable unit.
pub(super) fn amount(bytes: u64) -> String {
    match bytes {
        0..10_000 => format!("{bytes} B"),
        10_000..10_000_000 => format!("{} kB", bytes / 1_000),
        _ => format!("{} MB", bytes / 1_000_000),
    }
}
