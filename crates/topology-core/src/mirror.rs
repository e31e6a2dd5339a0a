//! A copy of the kernel's IPVS table, as far as it is known, with the owner of each virtual server.
//!
//! The mirror makes the cost of an update proportional to the change. A virtual server is read from the kernel at start
//! and after a failure. Otherwise the results of our own steps keep the copy up to date.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::model::Protocol;
use crate::plan::{Deadline, Step};
use crate::virtual_server::{RealServer, VirtualServerKey};

/// A virtual server as the kernel holds it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObservedServer {
    /// Name of the scheduler.
    pub scheduler: Arc<str>,
    /// Persistence in seconds; `None` without.
    pub persistence: Option<u32>,
    /// Whether everything else (scheduler flags, netmask, persistence engine) has the values that we write.
    pub plain: bool,
    /// Real servers, sorted by address and port.
    pub real_servers: Vec<ObservedRealServer>,
}

/// A real server as the kernel holds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ObservedRealServer {
    /// Address of the real server.
    pub address: IpAddr,
    /// Port of the real server.
    pub port: u16,
    /// Weight; 0 = no new connections.
    pub weight: u32,
    /// Whether everything else (forwarding method, thresholds) has the values that we write.
    pub plain: bool,
}

/// A draining real server: it only finishes its connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RealServerDrain {
    /// When it is removed even with connections left, in milliseconds of the caller's clock; `None` while it waits for
    /// its connections to end.
    pub until: Option<u64>,
    /// Its connections, active plus inactive, at the last read; `None` if it was not read since the drain began.
    pub connections: Option<u64>,
}

/// The result of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StepOutcome {
    /// The kernel did it.
    Done,
    /// The object to add exists already, in an unknown state.
    AlreadyExists,
    /// The object to change or remove does not exist.
    Missing,
    /// The kernel refused the step.
    Failed,
    /// Unknown: the reply was lost, or an earlier step failed.
    Unknown,
}

/// Whether the copy of a virtual server is valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trust {
    /// It is valid.
    Known,
    /// The virtual server must be read from the kernel first.
    Unknown,
}

/// The drains of one virtual server, by address and port.
type Drains = BTreeMap<(IpAddr, u16), RealServerDrain>;

/// The copy of the kernel's IPVS table.
#[derive(Debug, Default)]
pub struct Mirror {
    servers: FxHashMap<VirtualServerKey, ObservedServer>,
    ours: FxHashSet<VirtualServerKey>,
    distrusted: FxHashSet<VirtualServerKey>,
    drains: FxHashMap<VirtualServerKey, Drains>,
    /// Addresses and ports whose UDP flows may still be tracked: of deleted real servers, and the virtual server's own, if
    /// flows without a real server could not be deleted.
    stale_flows: FxHashMap<VirtualServerKey, BTreeSet<(IpAddr, u16)>>,
    drain_timeout: u64,
    /// Firewall marks of UDP ports. The kernel does not know the protocol of a mark.
    udp_marks: FxHashSet<u32>,
}

impl Mirror {
    /// Creates an empty mirror. `ours` are the keys in the ownership record. A real server whose weight is set to 0 may
    /// finish its connections for `drain_timeout` milliseconds.
    pub fn new(ours: impl IntoIterator<Item = VirtualServerKey>, drain_timeout: u64) -> Self {
        Self {
            ours: ours.into_iter().collect(),
            drain_timeout,
            ..Self::default()
        }
    }

    /// Stores a virtual server that was read, with the connections (active plus inactive) of each of its real servers
    /// in order; `None` if the kernel does not have it.
    ///
    /// A real server that is seen with weight 0 for the first time drains. The next plan decides on its deadline.
    pub fn observe(&mut self, key: VirtualServerKey, observed: Option<(ObservedServer, &[u64])>) {
        self.distrusted.remove(&key);
        let before = self.drains.remove(&key).unwrap_or_default();
        let Some((mut observed, connections)) = observed else {
            self.servers.remove(&key);
            return;
        };
        let weightless = observed
            .real_servers
            .iter()
            .zip(connections)
            .filter(|(real, _)| real.weight == 0);
        let drains: Drains = weightless
            .map(|(real, connections)| {
                let at = (real.address, real.port);
                let until = before.get(&at).and_then(|drain| drain.until);
                (
                    at,
                    RealServerDrain {
                        until,
                        connections: Some(*connections),
                    },
                )
            })
            .collect();
        if !drains.is_empty() {
            self.drains.insert(key, drains);
        }
        observed
            .real_servers
            .sort_unstable_by_key(|real| (real.address, real.port));
        observed.real_servers.shrink_to_fit();
        self.servers.insert(key, observed);
    }

    /// Records `key` as ours.
    pub fn own(&mut self, key: VirtualServerKey) {
        self.ours.insert(key);
    }

    /// Whether `key` is recorded as ours. Any other virtual server is foreign and never changed.
    pub fn is_ours(&self, key: &VirtualServerKey) -> bool {
        self.ours.contains(key)
    }

    /// All keys that are recorded as ours, in no order. The kernel may not have some of them: a reply was lost, or another
    /// program deleted the virtual server.
    pub fn ours(&self) -> impl Iterator<Item = &VirtualServerKey> {
        self.ours.iter()
    }

    /// Records the protocol of the packets with a firewall mark. It stays until the mark gets another one, so that it
    /// is still known when the virtual server of a released mark is deleted.
    pub fn set_mark_protocol(&mut self, mark: u32, protocol: Protocol) {
        if protocol == Protocol::Udp {
            self.udp_marks.insert(mark);
        } else {
            self.udp_marks.remove(&mark);
        }
    }

    /// Whether removed real servers of `key` may finish their connections: UDP has none to finish (KP-GT-01).
    pub(crate) fn drains(&self, key: &VirtualServerKey) -> bool {
        match key {
            VirtualServerKey::Address { protocol, .. } => *protocol != Protocol::Udp,
            VirtualServerKey::FirewallMark { mark, .. } => !self.udp_marks.contains(mark),
        }
    }

    /// Reserves memory for exactly so many more real servers under `key`: they are added one by one, and a mirror is
    /// large.
    pub fn expect(&mut self, key: &VirtualServerKey, real_servers: usize) {
        if let Some(server) = self.servers.get_mut(key) {
            server.real_servers.reserve_exact(real_servers);
        }
    }

    /// The virtual server that the kernel holds under `key`.
    pub fn get(&self, key: &VirtualServerKey) -> Option<&ObservedServer> {
        self.servers.get(key)
    }

    /// All keys in the kernel, ours and foreign, in no order.
    pub fn keys(&self) -> impl Iterator<Item = &VirtualServerKey> {
        self.servers.keys()
    }

    /// The drain of a real server; `None` if it does not drain.
    pub fn drain(
        &self,
        key: &VirtualServerKey,
        address: IpAddr,
        port: u16,
    ) -> Option<&RealServerDrain> {
        self.drains.get(key)?.get(&(address, port))
    }

    /// Stores a deadline of a plan.
    pub fn set_deadline(&mut self, deadline: &Deadline) {
        let at = (deadline.address, deadline.port);
        let drains = self.drains.entry(deadline.key).or_default();
        let connections = drains.get(&at).and_then(|drain| drain.connections);
        let drain = RealServerDrain {
            until: deadline.until,
            connections,
        };
        drains.insert(at, drain);
    }

    /// Restores deadlines of an earlier process, before the first read of the kernel. A deadline counts if its real
    /// server is then found with weight 0. It ends no later than a drain that begins `now`.
    pub fn restore_deadlines(&mut self, deadlines: &[Deadline], now: u64) {
        let latest = now.saturating_add(self.drain_timeout);
        for deadline in deadlines {
            if self.is_ours(&deadline.key) {
                self.set_deadline(&Deadline {
                    until: deadline.until.map(|until| until.min(latest)),
                    ..*deadline
                });
            }
        }
    }

    /// All deadlines, in no order.
    pub fn deadlines(&self) -> impl Iterator<Item = Deadline> {
        self.drains.keys().flat_map(|key| self.deadlines_of(key))
    }

    /// The deadlines of one virtual server.
    pub fn deadlines_of(&self, key: &VirtualServerKey) -> impl Iterator<Item = Deadline> {
        let key = *key;
        let drains = self.drains.get(&key).into_iter().flatten();
        let deadline =
            move |(&(address, port), drain): (&(IpAddr, u16), &RealServerDrain)| Deadline {
                key,
                address,
                port,
                until: drain.until,
            };
        drains
            .filter(|(_, drain)| drain.until.is_some())
            .map(deadline)
    }

    /// How long a removed real server may finish its connections, in milliseconds.
    pub fn drain_timeout(&self) -> u64 {
        self.drain_timeout
    }

    /// The number of our draining real servers.
    pub fn draining(&self) -> usize {
        let ours = self.drains.iter().filter(|(key, _)| self.is_ours(key));
        ours.map(|(_, drains)| drains.len()).sum()
    }

    /// Where flows under `key` lead that could not be deleted so far, by address and port: to deleted real servers, or to
    /// the virtual server itself.
    pub fn stale_flows(&self, key: &VirtualServerKey) -> impl Iterator<Item = (IpAddr, u16)> {
        self.stale_flows.get(key).into_iter().flatten().copied()
    }

    /// Whether the copy under `key` is valid.
    pub fn trust(&self, key: &VirtualServerKey) -> Trust {
        if self.distrusted.contains(key) {
            Trust::Unknown
        } else {
            Trust::Known
        }
    }

    /// Requires that `key` is read before the next step.
    pub fn mark_unknown(&mut self, key: VirtualServerKey) {
        self.distrusted.insert(key);
    }

    /// Stores the result of `step`. A failure makes the key unknown, unless an object to remove did not exist.
    pub fn commit(&mut self, step: &Step, outcome: StepOutcome) {
        let gone = matches!(
            step,
            Step::DeleteServer { .. } | Step::DeleteReal { .. } | Step::DeleteFlows { .. }
        );
        match outcome {
            StepOutcome::Done => self.apply(step),
            StepOutcome::Missing if gone => self.apply(step),
            StepOutcome::Missing
            | StepOutcome::AlreadyExists
            | StepOutcome::Failed
            | StepOutcome::Unknown => {
                // They may be flows from before the first real server, which are not kept yet.
                if let Step::DeleteFlows { key, address, port } = step {
                    self.add_stale_flows(key, [(*address, *port)]);
                }
                self.mark_unknown(*step.key());
            }
        }
    }

    fn apply(&mut self, step: &Step) {
        match step {
            Step::AddServer {
                key,
                scheduler,
                persistence,
            } => {
                let observed = ObservedServer {
                    scheduler: scheduler.name().into(),
                    persistence: *persistence,
                    plain: true,
                    real_servers: Vec::new(),
                };
                self.servers.insert(*key, observed);
                self.ours.insert(*key);
            }
            Step::EditServer {
                key,
                scheduler,
                persistence,
            } => {
                if let Some(server) = self.servers.get_mut(key) {
                    server.scheduler = scheduler.name().into();
                    server.persistence = *persistence;
                    server.plain = true;
                }
            }
            Step::AddReal { key, real } | Step::EditReal { key, real } => self.set_real(key, real),
            Step::DrainReal { key, address, port } => {
                let until = (self.drain(key, *address, *port)).and_then(|drain| drain.until);
                self.set_real(
                    key,
                    &RealServer {
                        address: *address,
                        port: *port,
                        weight: 0,
                    },
                );
                let drain = RealServerDrain {
                    until,
                    connections: None,
                };
                self.drains
                    .entry(*key)
                    .or_default()
                    .insert((*address, *port), drain);
            }
            Step::DeleteReal { key, address, port } => {
                self.remove_real(key, *address, *port);
                self.add_stale_flows(key, [(*address, *port)]);
            }
            Step::DeleteServer { key } => {
                let server = self.servers.remove(key);
                let reals = server.map(|server| server.real_servers).unwrap_or_default();
                self.add_stale_flows(key, reals.iter().map(|real| (real.address, real.port)));
                self.drains.remove(key);
                self.ours.remove(key);
            }
            Step::DeleteFlows { key, address, port } => self.flows_deleted(key, *address, *port),
        }
    }

    fn set_real(&mut self, key: &VirtualServerKey, real: &RealServer) {
        let Some(server) = self.servers.get_mut(key) else {
            return;
        };
        let RealServer {
            address,
            port,
            weight,
        } = *real;
        let observed = ObservedRealServer {
            address,
            port,
            weight,
            plain: true,
        };
        match find(&server.real_servers, address, port) {
            Ok(at) => {
                if let Some(known) = server.real_servers.get_mut(at) {
                    *known = observed;
                }
            }
            Err(at) => server.real_servers.insert(at, observed),
        }
        if !self.drains.is_empty() {
            self.end_drain(key, address, port);
        }
        // Flows to this address and port lead to a real server again.
        if !self.stale_flows.is_empty() {
            self.flows_deleted(key, address, port);
        }
    }

    /// Records that UDP flows are still tracked. Those of TCP and SCTP end by themselves.
    fn add_stale_flows(
        &mut self,
        key: &VirtualServerKey,
        reals: impl IntoIterator<Item = (IpAddr, u16)>,
    ) {
        if !self.drains(key) {
            self.stale_flows.entry(*key).or_default().extend(reals);
        }
    }

    fn flows_deleted(&mut self, key: &VirtualServerKey, address: IpAddr, port: u16) {
        if let Some(reals) = self.stale_flows.get_mut(key) {
            reals.remove(&(address, port));
            if reals.is_empty() {
                self.stale_flows.remove(key);
            }
        }
    }

    fn remove_real(&mut self, key: &VirtualServerKey, address: IpAddr, port: u16) {
        if let Some(server) = self.servers.get_mut(key)
            && let Ok(at) = find(&server.real_servers, address, port)
        {
            server.real_servers.remove(at);
        }
        self.end_drain(key, address, port);
    }

    fn end_drain(&mut self, key: &VirtualServerKey, address: IpAddr, port: u16) {
        if let Some(drains) = self.drains.get_mut(key) {
            drains.remove(&(address, port));
            if drains.is_empty() {
                self.drains.remove(key);
            }
        }
    }
}

/// The index of a real server, or where to insert it. Most are added in order, after the last one.
fn find(real_servers: &[ObservedRealServer], address: IpAddr, port: u16) -> Result<usize, usize> {
    let at = |real: &ObservedRealServer| (real.address, real.port);
    match real_servers.last() {
        Some(last) if at(last) < (address, port) => Err(real_servers.len()),
        _ => real_servers.binary_search_by_key(&(address, port), at),
    }
}
