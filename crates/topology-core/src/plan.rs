//! Computes the steps from the observed to the desired virtual server, in a safe order.

mod deadline;
mod step;

use std::net::IpAddr;

use crate::mirror::{Mirror, ObservedRealServer, ObservedServer, Trust};
use crate::virtual_server::{RealServer, VirtualServer, VirtualServerKey};

pub use deadline::Deadline;
pub use step::Step;

/// Steps in order, and when to plan again.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Plan {
    /// Additions first, removals last, so that the virtual server serves after each step.
    pub steps: Vec<Step>,
    /// When to check a drain again, in milliseconds of the caller's clock. The caller then reads the key from the
    /// kernel, for its connections, and plans again.
    pub wake_at: Option<u64>,
    /// Deadlines that begin or end with this plan. The caller stores them in the mirror before it executes the steps.
    pub deadlines: Vec<Deadline>,
}

/// Options of [`diff`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiffOptions<'a> {
    /// Whether to adopt a desired virtual server that exists in the kernel and is not recorded as ours.
    pub adopt: bool,
    /// Milliseconds between two checks of the connections of draining real servers.
    pub drain_poll: u64,
    /// The same for real servers without a deadline, which may drain for days.
    pub wait_poll: u64,
    /// Endpoints that exist, do not terminate and are not chosen, sorted by address and port. A real server among them
    /// drains without a deadline: its pod is healthy, and so are its connections (D9).
    pub unchosen: &'a [(IpAddr, u16)],
}

/// Returns the steps from what the kernel holds under `key` to `desired`.
///
/// There are no steps for a foreign virtual server, nor for a key with [`Trust::Unknown`], which must be read first.
pub fn diff(
    desired: Option<&VirtualServer>,
    mirror: &Mirror,
    key: &VirtualServerKey,
    now: u64,
    options: &DiffOptions<'_>,
) -> Plan {
    if mirror.trust(key) == Trust::Unknown {
        return Plan::default();
    }
    let mut plan = match (desired, mirror.get(key)) {
        (None, Some(observed)) if mirror.is_ours(key) => removal(key, observed, mirror),
        (Some(desired), None) => addition(desired),
        (Some(desired), Some(observed)) if options.adopt || mirror.is_ours(key) => KeptServer {
            desired,
            observed,
            mirror,
            now,
            options,
        }
        .plan(),
        (None, None) | (_, Some(_)) => Plan::default(),
    };
    plan.steps.extend(stale_flow_steps(desired, mirror, key));
    plan
}

/// Steps for flows that an earlier plan could not delete.
fn stale_flow_steps<'a>(
    desired: Option<&'a VirtualServer>,
    mirror: &'a Mirror,
    key: &'a VirtualServerKey,
) -> impl Iterator<Item = Step> + 'a {
    let returns = move |(address, port): &(IpAddr, u16)| {
        let mut reals = desired.iter().flat_map(|desired| &desired.real_servers);
        reals.any(|real| real.address == *address && real.port == *port)
    };
    let left = mirror.stale_flows(key).filter(move |real| !returns(real));
    left.map(|(address, port)| Step::DeleteFlows {
        key: *key,
        address,
        port,
    })
}

fn removal(key: &VirtualServerKey, observed: &ObservedServer, mirror: &Mirror) -> Plan {
    let mut steps = vec![Step::DeleteServer { key: *key }];
    if !mirror.drains(key) {
        let forget = |real: &ObservedRealServer| Step::DeleteFlows {
            key: *key,
            address: real.address,
            port: real.port,
        };
        steps.extend(observed.real_servers.iter().map(forget));
    }
    Plan {
        steps,
        ..Plan::default()
    }
}

fn addition(desired: &VirtualServer) -> Plan {
    let VirtualServer {
        key,
        scheduler,
        persistence,
        real_servers,
    } = desired;
    let server = Step::AddServer {
        key: *key,
        scheduler: *scheduler,
        persistence: *persistence,
    };
    let reals = real_servers.iter().map(|real| Step::AddReal {
        key: *key,
        real: *real,
    });
    Plan {
        steps: std::iter::once(server).chain(reals).collect(),
        ..Plan::default()
    }
}

/// A virtual server that exists and stays.
struct KeptServer<'a> {
    desired: &'a VirtualServer,
    observed: &'a ObservedServer,
    mirror: &'a Mirror,
    now: u64,
    options: &'a DiffOptions<'a>,
}

/// The steps of a change by kind, in the order of execution.
#[derive(Default)]
struct Phases {
    edit: Vec<Step>,
    add: Vec<Step>,
    raise: Vec<Step>,
    lower: Vec<Step>,
    drain: Vec<Step>,
    delete: Vec<Step>,
    wake_at: Option<u64>,
    deadlines: Vec<Deadline>,
}

impl KeptServer<'_> {
    fn plan(&self) -> Plan {
        let mut phases = Phases::default();
        self.edit_server(&mut phases);
        for real in &self.desired.real_servers {
            self.keep_real(real, &mut phases);
        }
        if self.observed.real_servers.len() + phases.add.len() > self.desired.real_servers.len() {
            self.leavers(&mut phases);
        }
        let Phases {
            edit,
            add,
            raise,
            lower,
            drain,
            delete,
            wake_at,
            deadlines,
        } = phases;
        Plan {
            steps: [edit, add, raise, lower, drain, delete]
                .into_iter()
                .flatten()
                .collect(),
            wake_at,
            deadlines,
        }
    }

    fn edit_server(&self, phases: &mut Phases) {
        let VirtualServer {
            key,
            scheduler,
            persistence,
            ..
        } = self.desired;
        let observed = self.observed;
        if *observed.scheduler != *scheduler.name()
            || observed.persistence != *persistence
            || !observed.plain
        {
            let step = Step::EditServer {
                key: *key,
                scheduler: *scheduler,
                persistence: *persistence,
            };
            phases.edit.push(step);
        }
    }

    fn keep_real(&self, real: &RealServer, phases: &mut Phases) {
        let key = self.desired.key;
        let known = &self.observed.real_servers;
        let at = known
            .binary_search_by_key(&(real.address, real.port), |real| (real.address, real.port));
        match at.ok().and_then(|at| known.get(at)) {
            None => phases.add.push(Step::AddReal { key, real: *real }),
            Some(known) if known.weight == real.weight && known.plain => {}
            Some(known) => {
                let steps = if real.weight > known.weight {
                    &mut phases.raise
                } else {
                    &mut phases.lower
                };
                steps.push(Step::EditReal { key, real: *real });
            }
        }
    }

    fn leavers(&self, phases: &mut Phases) {
        let stays: rustc_hash::FxHashSet<(IpAddr, u16)> = self
            .desired
            .real_servers
            .iter()
            .map(|real| (real.address, real.port))
            .collect();
        let leaving = |real: &&ObservedRealServer| !stays.contains(&(real.address, real.port));
        for real in self.observed.real_servers.iter().filter(leaving) {
            self.remove_or_drain(real, phases);
        }
    }

    fn remove_or_drain(&self, real: &ObservedRealServer, phases: &mut Phases) {
        let key = self.desired.key;
        let ObservedRealServer {
            address,
            port,
            weight,
            ..
        } = *real;
        if !self.mirror.drains(&key) {
            phases.delete.push(Step::DeleteReal { key, address, port });
            phases.delete.push(Step::DeleteFlows { key, address, port });
            return;
        }
        let drain = self.mirror.drain(&key, address, port);
        if weight > 0 {
            phases.drain.push(Step::DrainReal { key, address, port });
        } else if drain.is_some_and(|drain| drain.connections == Some(0)) {
            phases.delete.push(Step::DeleteReal { key, address, port });
            return;
        }
        let before = drain.and_then(|drain| drain.until);
        let until = self.deadline(real, before);
        if until.is_some_and(|until| until <= self.now) && weight == 0 {
            phases.delete.push(Step::DeleteReal { key, address, port });
            return;
        }
        if until != before || weight > 0 {
            phases.deadlines.push(Deadline {
                key,
                address,
                port,
                until,
            });
        }
        let poll = match until {
            Some(_) => self.options.drain_poll,
            None => self.options.wait_poll,
        };
        let next = self.now.saturating_add(poll);
        phases.wake(until.map_or(next, |until| until.min(next)));
    }

    /// When a leaving real server is deleted even with connections left: never, while its endpoint exists and does not
    /// terminate; otherwise at its present deadline, or after the drain timeout from now.
    fn deadline(&self, real: &ObservedRealServer, before: Option<u64>) -> Option<u64> {
        let is_unchosen = {
            let at = (real.address, real.port);
            self.options.unchosen.binary_search(&at).is_ok()
        };
        let whole = self.now.saturating_add(self.mirror.drain_timeout());
        let before = before.filter(|_| real.weight == 0);
        (!is_unchosen).then(|| before.unwrap_or(whole))
    }
}

impl Phases {
    fn wake(&mut self, at: u64) {
        self.wake_at = Some(self.wake_at.map_or(at, |earlier| earlier.min(at)));
    }
}
