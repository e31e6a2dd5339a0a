//! One guest for one node proxy.

use std::fs;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use guest_wire::report::Rival;
use guest_wire::{ProxyKind, Record};

use crate::bench::listen::listen;
use testbed::controlplane::{FROM_GUEST, Own};
use testbed::vm::image::Addition;
use testbed::vm::kernel::Kernel;
use testbed::vm::machine::{Pace, Spec};
use testbed::vm::progress::Step;
use testbed::vm::{Machines, build};

/// Endpoints of each Service.
pub(super) const ENDPOINTS: u32 = 10;

/// Room for the image, which holds kube-proxy twice while it is unpacked, and for what it needs at 10,000 Services, in MiB.
const MEMORY: u32 = 3_072;

/// What kube-proxy starts in ipvs mode, under the names by which it calls them.
const TABLES: [&str; 6] = [
    "iptables",
    "iptables-restore",
    "iptables-save",
    "ip6tables",
    "ip6tables-restore",
    "ip6tables-save",
];

/// What every guest of this bench holds beside its proxy.
pub(super) fn programs(lab: &Machines) -> anyhow::Result<Vec<Addition>> {
    let mut additions = build::programs(build::Profile::Release)?;
    additions.extend(lab.tool("ipset", &["ipset"])?);
    additions.extend(lab.tool("xtables-nft-multi", &TABLES)?);
    additions.push(lab.tree("usr/lib/x86_64-linux-gnu/xtables", "usr/lib/xtables"));
    Ok(additions)
}

/// What replaces endpoints, outside of the guest: the program that is in it, too.
pub(super) fn roller(programs: &[Addition], api: u16, services: u32) -> anyhow::Result<Command> {
    let mut guests = programs.iter().filter_map(|addition| match addition {
        Addition::Program { path, from } if path == "usr/bin/guest" => Some(from),
        _ => None,
    });
    let mut roller = Command::new(guests.next().context("the guests hold no `guest`")?);
    roller
        .args(["bench", "roll", "--api", &format!("127.0.0.1:{api}")])
        .args(["--services", &services.to_string()])
        .args(["--endpoints", &ENDPOINTS.to_string()]);
    Ok(roller)
}

/// kube-proxy needs up to half a minute for each at 10,000 Services.
pub(super) fn most_changes(kind: ProxyKind) -> u32 {
    match kind {
        ProxyKind::IpvsTopo => u32::MAX,
        ProxyKind::Ipvs | ProxyKind::Nftables => 3,
    }
}

/// What one guest is to measure.
pub(super) struct Task {
    pub(super) kind: ProxyKind,
    pub(super) services: u32,
    pub(super) changes: u32,
    /// The port of this machine through which the guest writes to the API server, without TLS and a token.
    pub(super) api: u16,
    /// The port of this machine's `guest bench roll`, if rolling updates are measured.
    pub(super) roller: Option<u16>,
    /// Seconds of them.
    pub(super) churn: u64,
    /// Minutes it may take.
    pub(super) limit: u64,
}

impl Task {
    /// Boots the guest and returns what it measured.
    pub(super) fn run(
        &self,
        lab: &Machines,
        kernel: &Kernel,
        plane: &Own,
        programs: &[Addition],
    ) -> anyhow::Result<Rival> {
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
        let boot = Step::begin(format!("booting {}", kernel.release));
        let machine = lab.start(&Spec {
            kernel,
            additions,
            memory: MEMORY,
            network: true,
            limit: Duration::from_secs(60 * self.limit),
            pace: Pace::Real,
        })?;
        let told = listen(machine, boot)?;
        let Record::Rival(mut rival) = told.record else {
            bail!("the guest told something else: {:?}", told.record);
        };
        if let Some(churn) = &mut rival.churn {
            let [begin, end] = told.marks[..] else {
                bail!("the guest said {} times when to look", told.marks.len());
            };
            churn.given = end.given_since(begin);
            ensure!(churn.given > 0.0, "the guest stood still");
        }
        Ok(*rival)
    }

    /// What the guest calls the proxy, and the proxy's binary there.
    pub(super) fn names(&self) -> (&'static str, &'static str) {
        match self.kind {
            ProxyKind::IpvsTopo => ("ipvs-topo", "/usr/bin/ipvs-topo"),
            ProxyKind::Ipvs => ("ipvs", "/usr/bin/kubernetes"),
            ProxyKind::Nftables => ("nftables", "/usr/bin/kubernetes"),
        }
    }

    fn job(&self) -> String {
        let (name, binary) = self.names();
        let churn = self.roller.map_or_else(String::new, |port| {
            format!(" --churn {} --roller {FROM_GUEST}:{port}", self.churn)
        });
        format!(
            "modprobe virtio_net\nexec guest bench rival {name} --binary {binary} --kubeconfig /kubeconfig \
             --api {FROM_GUEST}:{} --services {} --endpoints {} --changes {}{churn}\n",
            self.api, self.services, ENDPOINTS, self.changes
        )
    }
}
