//! Runs one guest for one node proxy.

use std::fs;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use guest_wire::report::ProxyReport;
use guest_wire::{ProxyKind, Record, ServiceType};

use crate::bench::listen::listen;
use testbed::controlplane::{FROM_GUEST, ScopedControlPlane};
use testbed::vm::image::Addition;
use testbed::vm::kernel::Kernel;
use testbed::vm::machine::{GuestClock, GuestSpec};
use testbed::vm::progress::ProgressLine;
use testbed::vm::{Machines, build};

/// Endpoints of each Service.
pub(crate) const ENDPOINTS: u32 = 10;

/// Memory in MiB: for the image, which contains kube-proxy twice while it is unpacked, and for kube-proxy with 10,000
/// Services.
const MEMORY: u32 = 3_072;

/// Returns the programs of every guest of this bench.
pub(super) fn programs(machines: &Machines) -> anyhow::Result<Vec<Addition>> {
    let mut additions = build::programs(build::Profile::Release)?;
    additions.extend(machines.kube_proxy_tools()?);
    Ok(additions)
}

/// Returns the command that replaces endpoints. It runs on the host, with the same program as in the guest.
pub(super) fn roller(programs: &[Addition], api: u16, services: u32) -> anyhow::Result<Command> {
    let guest = build::program(programs, "usr/bin/guest");
    let mut roller = Command::new(guest.context("the guests hold no `guest`")?);
    roller
        .args(["bench", "roll", "--api", &format!("127.0.0.1:{api}")])
        .args(["--services", &services.to_string()])
        .args(["--endpoints", &ENDPOINTS.to_string()]);
    Ok(roller)
}

/// Limits the changes: kube-proxy needs up to half a minute for each with 10,000 Services.
pub(super) fn max_changes(kind: ProxyKind) -> u32 {
    match kind {
        ProxyKind::IpvsTopo => u32::MAX,
        ProxyKind::Ipvs | ProxyKind::Nftables => 3,
    }
}

/// One measurement in one guest.
pub(super) struct GuestRun {
    pub(super) kind: ProxyKind,
    pub(super) services: u32,
    pub(super) service_type: ServiceType,
    pub(super) changes: u32,
    /// The host's port through which the guest writes to the API server without TLS and token.
    pub(super) api: u16,
    /// The host's port of `guest bench roll`.
    pub(super) roller: u16,
    /// Whether traffic is measured.
    pub(super) traffic: bool,
    /// Seconds of rolling updates, if these are measured.
    pub(super) churn: Option<u64>,
    /// Time limit in minutes.
    pub(super) limit: u64,
}

impl GuestRun {
    /// Boots the guest and returns its readings.
    pub(super) fn run(
        &self,
        machines: &Machines,
        kernel: &Kernel,
        plane: &ScopedControlPlane,
        programs: &[Addition],
    ) -> anyhow::Result<ProxyReport> {
        let (name, _) = self.names();
        anstream::eprintln!("  {name}, {} Services", self.services);
        let mut additions = programs.to_vec();
        if self.kind != ProxyKind::IpvsTopo {
            additions.push(Addition::Program {
                path: "usr/bin/kubernetes".to_owned(),
                from: plane.program(),
            });
        }
        let kubeconfig = fs::read_to_string(plane.kubeconfig())?;
        additions.push(Addition::Text {
            path: "kubeconfig".to_owned(),
            content: kubeconfig.replace("127.0.0.1", FROM_GUEST),
        });
        additions.push(Addition::Text {
            path: "job".to_owned(),
            content: self.job(),
        });
        let boot = ProgressLine::begin(format!("booting {}", kernel.release));
        let machine = machines.start(&GuestSpec {
            kernel,
            additions,
            memory: MEMORY,
            network: true,
            limit: Duration::from_secs(60 * self.limit),
            clock: self.clock(),
        })?;
        let result = listen(machine, boot)?;
        let Record::Proxy(mut proxy) = result.record else {
            bail!("the guest sent another record: {:?}", result.record);
        };
        if let Some(churn) = &mut proxy.churn {
            let [begin, end] = result.marks[..] else {
                bail!("the guest sent {} marks", result.marks.len());
            };
            churn.cpu_share = end.share_since(begin);
            ensure!(churn.cpu_share > 0.0, "the guest stood still");
        }
        Ok(*proxy)
    }

    /// Traffic stays in the guest, so its cost can be counted; everything else includes the API server's time.
    fn clock(&self) -> GuestClock {
        if self.traffic {
            GuestClock::CountedUnlessIdle
        } else {
            GuestClock::Real
        }
    }

    /// Returns the proxy's name on the guest's command line, and its binary in the guest.
    pub(super) fn names(&self) -> (&'static str, &'static str) {
        match self.kind {
            ProxyKind::IpvsTopo => ("ipvs-topo", "/usr/bin/ipvs-topo"),
            ProxyKind::Ipvs => ("ipvs", "/usr/bin/kubernetes"),
            ProxyKind::Nftables => ("nftables", "/usr/bin/kubernetes"),
        }
    }

    fn job(&self) -> String {
        let (name, binary) = self.names();
        let Self {
            services,
            service_type,
            changes,
            api,
            roller,
            ..
        } = self;
        let traffic = if self.traffic { " --traffic" } else { "" };
        let churn = self
            .churn
            .map_or_else(String::new, |seconds| format!(" --churn {seconds}"));
        format!(
            "modprobe virtio_net\nexec guest bench proxy {name} --binary {binary} --kubeconfig /kubeconfig \
             --api {FROM_GUEST}:{api} --roller {FROM_GUEST}:{roller} --services {services} \
             --service-type {service_type} --endpoints {ENDPOINTS} --changes {changes}{traffic}{churn}\n"
        )
    }
}
