//! What the kernel holds, as far as it is known, and whose it is.
//!
//! The mirror is what makes the cost of a change the cost of the change: a key is read from the kernel at start and
//! after a failure, otherwise the outcomes of our own steps keep it true.

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
    /// The name of its scheduler.
    pub scheduler: Arc<str>,
    /// Seconds of persistence; none without.
    pub persistence: Option<u32>,
    /// Whether everything else (the scheduler's flags, netmask, persistence engine) is as we write it.
    pub plain: bool,
    /// Its real servers, by address and port.
    pub real_servers: Vec<ObservedRealServer>,
}

/// A real server as the kernel holds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ObservedRealServer {
    /// Its address.
    pub address: IpAddr,
    /// Its port.
    pub port: u16,
    /// Its weight; 0 = no new connections.
    pub weight: u32,
    /// Whether everything else (forwarding method, thresholds) is as we write it.
    pub plain: bool,
}

/// A real server that finishes its connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RealServerDrain {
    /// When it is removed whatever its connections, in milliseconds of the caller's clock; `None` as long as it waits
    /// for their end.
    pub until: Option<u64>,
    /// Its connections, active and inactive, when it was last read; none if not read since it began.
    pub connections: Option<u64>,
}

/// What became of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StepOutcome {
    /// The kernel did it.
    Done,
    /// What was to be added is there already, in a state we do not know.
    AlreadyExists,
    /// What was to be changed or removed is not there.
    Missing,
    /// The kernel refused.
    Failed,
    /// Nobody knows: its answer was lost, or a step before it failed.
    Unknown,
}

/// Whether the mirror's word on a key can be relied on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trust {
    /// It can.
    Known,
    /// The key has to be read from the kernel first.
    Unknown,
}

/// The drains of one virtual server, by address and port.
type Drains = BTreeMap<(IpAddr, u16), RealServerDrain>;

/// Everything known of the kernel's IPVS table.
#[derive(Debug, Default)]
pub struct Mirror {
    servers: FxHashMap<VirtualServerKey, ObservedServer>,
    ours: FxHashSet<VirtualServerKey>,
    distrusted: FxHashSet<VirtualServerKey>,
    drains: FxHashMap<VirtualServerKey, Drains>,
    /// Deleted UDP real servers whose flows are still tracked, as far as we know.
    unforgotten: FxHashMap<VirtualServerKey, BTreeSet<(IpAddr, u16)>>,
    drain_timeout: u64,
}

impl Mirror {
    /// An empty mirror; `ours` are the keys on the ownership record, and a real server whose weight is set to 0 may
    /// finish its connections for `drain_timeout` milliseconds.
    pub fn new(ours: impl IntoIterator<Item = VirtualServerKey>, drain_timeout: u64) -> Self {
        Self {
            ours: ours.into_iter().collect(),
            drain_timeout,
            ..Self::default()
        }
    }

    /// Takes in a read of one key, with the connections (active and inactive) of each of its real servers in order;
    /// none if the kernel has no such virtual server.
    ///
    /// A real server seen with weight 0 for the first time drains; the next plan says whether it has a deadline.
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

    /// Puts `key` on the record as ours.
    pub fn own(&mut self, key: VirtualServerKey) {
        self.ours.insert(key);
    }

    /// Whether `key` is on the record as ours. A virtual server that is not is foreign: it is never touched.
    pub fn is_ours(&self, key: &VirtualServerKey) -> bool {
        self.ours.contains(key)
    }

    /// Makes room for exactly that many more real servers under `key`: they come one by one, but a mirror is large.
    pub fn expect(&mut self, key: &VirtualServerKey, real_servers: usize) {
        if let Some(server) = self.servers.get_mut(key) {
            server.real_servers.reserve_exact(real_servers);
        }
    }

    /// What the kernel holds under `key`.
    pub fn get(&self, key: &VirtualServerKey) -> Option<&ObservedServer> {
        self.servers.get(key)
    }

    /// Every key the kernel holds, ours and foreign, in no order.
    pub fn keys(&self) -> impl Iterator<Item = &VirtualServerKey> {
        self.servers.keys()
    }

    /// How a real server's drain stands; none if it does not drain.
    pub fn drain(
        &self,
        key: &VirtualServerKey,
        address: IpAddr,
        port: u16,
    ) -> Option<&RealServerDrain> {
        self.drains.get(key)?.get(&(address, port))
    }

    /// Takes in a deadline of a plan.
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

    /// Takes in deadlines of an earlier process before the kernel is first read. One counts if its real server is then found
    /// with weight 0, and ends no later than a drain that begins `now`.
    pub fn recall(&mut self, deadlines: &[Deadline], now: u64) {
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

    /// Every deadline, in no order.
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

    /// How long a real server that goes away and whose weight is set to 0 may finish its connections, in milliseconds.
    pub fn drain_timeout(&self) -> u64 {
        self.drain_timeout
    }

    /// How many real servers of ours drain.
    pub fn draining(&self) -> usize {
        let ours = self.drains.iter().filter(|(key, _)| self.is_ours(key));
        ours.map(|(_, drains)| drains.len()).sum()
    }

    /// Real servers under `key` that are gone and whose flows could not be forgotten so far, by address and port.
    pub fn unforgotten(&self, key: &VirtualServerKey) -> impl Iterator<Item = (IpAddr, u16)> {
        self.unforgotten.get(key).into_iter().flatten().copied()
    }

    /// Whether the mirror's word on `key` can be relied on.
    pub fn trust(&self, key: &VirtualServerKey) -> Trust {
        if self.distrusted.contains(key) {
            Trust::Unknown
        } else {
            Trust::Known
        }
    }

    /// Marks `key` as to be read again before the next step.
    pub fn distrust(&mut self, key: VirtualServerKey) {
        self.distrusted.insert(key);
    }

    /// Takes in what became of `step`. Anything but success, or the absence of what was to go, makes the key unknown.
    pub fn commit(&mut self, step: &Step, outcome: StepOutcome) {
        let gone = matches!(
            step,
            Step::DeleteServer { .. } | Step::DeleteReal { .. } | Step::ForgetFlows { .. }
        );
        match outcome {
            StepOutcome::Done => self.apply(step),
            StepOutcome::Missing if gone => self.apply(step),
            StepOutcome::Missing
            | StepOutcome::AlreadyExists
            | StepOutcome::Failed
            | StepOutcome::Unknown => {
                self.distrust(*step.key());
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
                self.remember(key, [(*address, *port)]);
            }
            Step::DeleteServer { key } => {
                let server = self.servers.remove(key);
                let reals = server.map(|server| server.real_servers).unwrap_or_default();
                self.remember(key, reals.iter().map(|real| (real.address, real.port)));
                self.drains.remove(key);
                self.ours.remove(key);
            }
            Step::ForgetFlows { key, address, port } => self.forgotten(key, *address, *port),
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
        // Whatever is tracked leads to a real server again.
        if !self.unforgotten.is_empty() {
            self.forgotten(key, address, port);
        }
    }

    /// Notes that flows of real servers that are gone are still tracked; those of TCP and SCTP end by themselves.
    fn remember(&mut self, key: &VirtualServerKey, reals: impl IntoIterator<Item = (IpAddr, u16)>) {
        if !drains(key) {
            self.unforgotten.entry(*key).or_default().extend(reals);
        }
    }

    fn forgotten(&mut self, key: &VirtualServerKey, address: IpAddr, port: u16) {
        if let Some(reals) = self.unforgotten.get_mut(key) {
            reals.remove(&(address, port));
            if reals.is_empty() {
                self.unforgotten.remove(key);
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

/// Where a real server is, or belongs. Most are added in order, behind the last one.
fn find(real_servers: &[ObservedRealServer], address: IpAddr, port: u16) -> Result<usize, usize> {
    let at = |real: &ObservedRealServer| (real.address, real.port);
    match real_servers.last() {
        Some(last) if at(last) < (address, port) => Err(real_servers.len()),
        _ => real_servers.binary_search_by_key(&(address, port), at),
    }
}

/// Whether leaving real servers of `key` may finish their connections: those of UDP have none to finish (KP-GT-01).
pub(crate) fn drains(key: &VirtualServerKey) -> bool {
    !matches!(
        key,
        VirtualServerKey::Address {
            protocol: Protocol::Udp,
            ..
        }
    )
}
