//! Sets the node's settings: sysctls, `kube-ipvs0`, and the timeouts of connections.

use std::fmt::Display;

use agent_api::status::{TimeoutView, TimeoutsView};
use dataplane::host::{Host, NodeNeeds, Prepared, unrecorded_text};
use dataplane::ipvs::{IpvsTimeouts, Kernel, KernelError};
use dataplane::ownership::SettingChange;
use dataplane::sysctl::ConntrackTimeouts;
use topology_core::mirror::ObservedRealServer;
use topology_core::model::Family;
use topology_core::plan::Step;
use topology_core::scheduler::Scheduler;
use topology_core::virtual_server::{RealServer, VirtualServer};

use super::pass::DesiredKeys;
use super::reconciler::Reconciler;
use crate::agent_config::{Estimation, StrictArp};
use crate::node_warning::Topic;

/// The schedulers that hash the client's address.
const HASHING: [Scheduler; 2] = [Scheduler::Mh, Scheduler::Sh];

/// With so many virtual and real servers, [`Estimation::Auto`] stops estimation: its cost grows with their number, and
/// delays packets (PAIN-17).
const MANY_SERVERS: u64 = 10_000;

impl<K: Kernel, H: Host> Reconciler<K, H> {
    /// Sets what differs. Returns the number of changes.
    pub(super) async fn prepare(&mut self) -> u64 {
        self.settings.hashes = self.has_hashing_scheduler();
        self.settings.has_many_servers = self.counts.servers() >= MANY_SERVERS;
        self.set_node_settings().await
    }

    /// Sets what differs before the first virtual server with a hashing scheduler.
    pub(super) async fn prepare_for(&mut self, steps: &[Step]) {
        let hashed = self.settings.hashes;
        self.settings.hashes |= steps.iter().any(sets_hashing_scheduler);
        if self.settings.hashes != hashed {
            self.set_node_settings().await;
        }
    }

    /// Sets what differs before a pass makes many servers of few. Call it before the first step of the pass: the steps
    /// are sent in chunks, and none of them is large.
    pub(super) async fn prepare_for_growth(&mut self, desired: &DesiredKeys) {
        let had_many = self.settings.has_many_servers;
        let desired = desired.values().flatten();
        let added: u64 = desired.map(|target| self.additions(&target.server)).sum();
        self.settings.has_many_servers |= self.counts.servers() + added >= MANY_SERVERS;
        if self.settings.has_many_servers != had_many {
            self.set_node_settings().await;
        }
    }

    /// The number of virtual and real servers that are desired and not in the kernel.
    fn additions(&self, desired: &VirtualServer) -> u64 {
        let reals = &desired.real_servers;
        let added = match self.mirror.get(&desired.key) {
            None => 1 + reals.len(),
            Some(held) if self.mirror.is_ours(&desired.key) => {
                let held = &held.real_servers;
                let at = |real: &ObservedRealServer| (real.address, real.port);
                let is_new = |real: &&RealServer| {
                    held.binary_search_by_key(&(real.address, real.port), at)
                        .is_err()
                };
                reals.iter().filter(is_new).count()
            }
            Some(_) => 0,
        };
        added as u64
    }

    async fn set_node_settings(&mut self) -> u64 {
        let needs = self.needs();
        let mut prepared = self.host.prepare(needs).await;
        match self.set_timeouts(&mut prepared).await {
            Ok(timeouts) => self.set_effective(effective(timeouts, prepared.conntrack)),
            Err(error) => prepared.warnings.push(format!(
                "the timeouts of IPVS cannot be set: {error}; see `ipvsadm --list --timeout`, and set them with \
                 `ipvsadm --set`"
            )),
        }
        let Prepared {
            changed,
            warnings,
            counters_stopped,
            ..
        } = prepared;
        self.settings.counters_stopped = counters_stopped;
        for change in &changed {
            tracing::info!("{change}");
        }
        self.warnings.set(Topic::Settings, warnings);
        changed.len() as u64
    }

    /// Whether a virtual server has a scheduler that hashes, or requests one that the kernel may get.
    fn has_hashing_scheduler(&self) -> bool {
        let is_name = |name: &str| HASHING.iter().any(|scheduler| scheduler.name() == name);
        let mut servers = self.mirror.keys().filter_map(|key| self.mirror.get(key));
        let missing = self.schedulers.missing();
        HASHING.contains(&self.config.scheduler)
            || HASHING.iter().any(|scheduler| missing.contains(scheduler))
            || servers.any(|server| is_name(&server.scheduler))
    }

    fn needs(&self) -> NodeNeeds {
        let mut services = self.index.snapshot().services();
        NodeNeeds {
            announces_own: self.config.strict_arp == StrictArp::NoRepliesAndOwnSender,
            hashes: self.settings.hashes,
            estimation: match self.config.estimation {
                Estimation::Auto => self.settings.has_many_servers.then_some(false),
                Estimation::On => Some(true),
                Estimation::Off => Some(false),
            },
            serves_v6: services.any(|service| {
                let mut frontends = service.frontends.iter();
                frontends.any(|frontend| Family::of(frontend.address) == Family::V6)
            }),
        }
    }

    /// Sets the timeouts that differ from the configured ones, with one command. Returns those in effect.
    async fn set_timeouts(&mut self, prepared: &mut Prepared) -> Result<IpvsTimeouts, KernelError> {
        let held = self.kernel.timeouts().await?;
        let changes = changes(held, self.config.ipvs_timeouts);
        if changes.is_empty() {
            return Ok(held);
        }
        for change in &changes {
            if let Err(error) = self.host.record_setting(change) {
                prepared.warnings.push(unrecorded_text(&error));
            }
        }
        self.kernel.set_timeouts(self.config.ipvs_timeouts).await?;
        self.crash_point.record_writes(1);
        let lines = changes.iter().map(ToString::to_string);
        prepared.changed.extend(lines);
        self.kernel.timeouts().await
    }

    /// Keeps and logs how long connections without packets are known, if that changed.
    fn set_effective(&mut self, timeouts: TimeoutsView) {
        if self.settings.timeouts != Some(timeouts) {
            tracing::info!("{}", effective_text(timeouts));
            self.settings.timeouts = Some(timeouts);
        }
    }
}

fn sets_hashing_scheduler(step: &Step) -> bool {
    let (Step::AddServer { scheduler, .. } | Step::EditServer { scheduler, .. }) = step else {
        return false;
    };
    HASHING.contains(scheduler)
}

/// The timeouts that differ, as changes. A configured 0 keeps a timeout, as in the kernel.
fn changes(held: IpvsTimeouts, desired: IpvsTimeouts) -> Vec<SettingChange> {
    let change = |name: &str, held: Option<u32>, desired: Option<u32>| {
        let (held, desired) = (held?, desired.filter(|seconds| *seconds != 0)?);
        (held != desired).then(|| SettingChange {
            name: format!("ipvs.{name}"),
            old: held.to_string(),
            new: desired.to_string(),
        })
    };
    let changes = [
        change("tcp_timeout", held.tcp, desired.tcp),
        change("tcpfin_timeout", held.tcp_fin, desired.tcp_fin),
        change("udp_timeout", held.udp, desired.udp),
    ];
    changes.into_iter().flatten().collect()
}

fn effective(ipvs: IpvsTimeouts, conntrack: ConntrackTimeouts) -> TimeoutsView {
    let row = |ipvs: Option<u32>, conntrack| TimeoutView::of(ipvs.map(u64::from), conntrack);
    TimeoutsView {
        tcp: row(ipvs.tcp, conntrack.tcp),
        tcp_fin: row(ipvs.tcp_fin, conntrack.tcp_fin),
        udp: row(ipvs.udp, conntrack.udp),
    }
}

fn effective_text(timeouts: TimeoutsView) -> String {
    let rows = [
        ("TCP", timeouts.tcp),
        ("TCP after FIN", timeouts.tcp_fin),
        ("UDP", timeouts.udp),
    ];
    let texts = rows.map(|(name, timeout)| {
        format!(
            "{name} {} s (IPVS {}, connection tracking {})",
            text(timeout.effective_seconds),
            text(timeout.ipvs_seconds),
            text(timeout.conntrack_seconds)
        )
    });
    format!("idle connections end after: {}", texts.join("; "))
}

fn text(seconds: Option<impl Display>) -> String {
    seconds.map_or_else(|| "?".to_owned(), |seconds| seconds.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    const HELD: IpvsTimeouts = IpvsTimeouts {
        tcp: Some(900),
        tcp_fin: Some(120),
        udp: Some(300),
    };

    #[test]
    fn kp_to_01_only_configured_timeouts_that_differ_are_changed_and_0_keeps_one() {
        assert!(changes(HELD, IpvsTimeouts::default()).is_empty());
        let desired = IpvsTimeouts {
            tcp: Some(900),
            tcp_fin: Some(0),
            udp: Some(60),
        };
        let texts = changes(HELD, desired);
        let texts: Vec<_> = texts.iter().map(ToString::to_string).collect();
        assert_eq!(texts, ["ipvs.udp_timeout: 300 -> 60"]);
        let without_udp = IpvsTimeouts { udp: None, ..HELD };
        assert!(changes(without_udp, desired).is_empty());
    }

    #[test]
    fn kp_wk_13_the_smaller_timeout_of_ipvs_and_connection_tracking_counts() {
        let conntrack = ConntrackTimeouts {
            tcp: Some(86_400),
            tcp_fin: None,
            udp: Some(120),
        };
        assert_eq!(
            effective_text(effective(HELD, conntrack)),
            "idle connections end after: TCP 900 s (IPVS 900, connection tracking 86400); \
             TCP after FIN 120 s (IPVS 120, connection tracking ?); \
             UDP 120 s (IPVS 300, connection tracking 120)"
        );
    }
}
