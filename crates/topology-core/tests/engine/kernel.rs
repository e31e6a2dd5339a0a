//! A simulated kernel: it holds virtual servers, refuses what the real one refuses, and fails on request.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use topology_core::mirror::{Mirror, ObservedRealServer, ObservedServer, StepOutcome};
use topology_core::plan::{DiffOptions, Plan, Step, diff};
use topology_core::virtual_server::{RealServer, VirtualServer, VirtualServerKey};

/// How long real servers may drain in these tests, in milliseconds.
pub(crate) const TIMEOUT: u64 = 30_000;
/// The interval between two checks of them.
pub(crate) const POLL: u64 = 5_000;
pub(crate) const OPTIONS: DiffOptions<'static> = DiffOptions {
    adopt: true,
    drain_poll: POLL,
    wait_poll: 2 * POLL,
    unchosen: &[],
};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Held {
    pub(crate) scheduler: Arc<str>,
    pub(crate) persistence: Option<u32>,
    pub(crate) plain: bool,
    pub(crate) reals: BTreeMap<(IpAddr, u16), HeldReal>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct HeldReal {
    pub(crate) weight: u32,
    pub(crate) plain: bool,
    pub(crate) connections: u64,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Kernel {
    pub(crate) servers: BTreeMap<VirtualServerKey, Held>,
    /// Flows that were deleted.
    pub(crate) forgotten: Vec<(IpAddr, u16)>,
}

impl Kernel {
    /// Carries out a step, or returns an error, as `ip_vs_ctl.c` does.
    pub(crate) fn execute(&mut self, step: &Step) -> StepOutcome {
        match step {
            Step::AddServer {
                key,
                scheduler,
                persistence,
            } => {
                let new = Held {
                    scheduler: scheduler.name().into(),
                    persistence: *persistence,
                    plain: true,
                    reals: BTreeMap::new(),
                };
                if self.servers.contains_key(key) {
                    return StepOutcome::AlreadyExists;
                }
                self.servers.insert(*key, new);
                StepOutcome::Done
            }
            Step::EditServer {
                key,
                scheduler,
                persistence,
            } => self.on(key, |held| {
                held.scheduler = scheduler.name().into();
                (held.persistence, held.plain) = (*persistence, true);
                StepOutcome::Done
            }),
            Step::DeleteServer { key } => match self.servers.remove(key) {
                Some(_) => StepOutcome::Done,
                None => StepOutcome::Missing,
            },
            Step::AddReal { key, real } => self.on(key, |held| held.add(real)),
            Step::EditReal { key, real } => self.on(key, |held| {
                held.edit((real.address, real.port), real.weight)
            }),
            Step::DrainReal { key, address, port } => {
                self.on(key, |held| held.edit((*address, *port), 0))
            }
            Step::DeleteReal { key, address, port } => {
                self.on(key, |held| match held.reals.remove(&(*address, *port)) {
                    Some(_) => StepOutcome::Done,
                    None => StepOutcome::Missing,
                })
            }
            Step::DeleteFlows { address, port, .. } => {
                self.forgotten.push((*address, *port));
                StepOutcome::Done
            }
        }
    }

    fn on(
        &mut self,
        key: &VirtualServerKey,
        act: impl FnOnce(&mut Held) -> StepOutcome,
    ) -> StepOutcome {
        self.servers.get_mut(key).map_or(StepOutcome::Missing, act)
    }

    /// Whether a new connection to `key` would be served.
    pub(crate) fn serves(&self, key: &VirtualServerKey) -> bool {
        let reals = self
            .servers
            .get(key)
            .into_iter()
            .flat_map(|held| held.reals.values());
        reals.into_iter().any(|real| real.weight > 0)
    }

    /// The result of reading one key.
    pub(crate) fn read(&self, key: &VirtualServerKey) -> Option<(ObservedServer, Vec<u64>)> {
        let held = self.servers.get(key)?;
        // Newest first, as the kernel lists them.
        let reals = held.reals.iter().rev();
        let observed = reals
            .clone()
            .map(|((address, port), real)| ObservedRealServer {
                address: *address,
                port: *port,
                weight: real.weight,
                plain: real.plain,
            });
        let observed = ObservedServer {
            scheduler: held.scheduler.clone(),
            persistence: held.persistence,
            plain: held.plain,
            real_servers: observed.collect(),
        };
        Some((observed, reals.map(|(_, real)| real.connections).collect()))
    }

    /// Reads every key into a mirror, as at the start of an agent.
    pub(crate) fn read_all(&self, mirror: &mut Mirror, now: u64) {
        for key in self.servers.keys() {
            self.read_into(mirror, key, now);
        }
    }

    pub(crate) fn read_into(&self, mirror: &mut Mirror, key: &VirtualServerKey, _now: u64) {
        let read = self.read(key);
        let read = read
            .as_ref()
            .map(|(observed, connections)| (observed.clone(), connections.as_slice()));
        mirror.observe(*key, read);
    }

    /// Executes a plan and commits each result; `fault` may replace the kernel's result of a step.
    pub(crate) fn apply(
        &mut self,
        plan: &Plan,
        mirror: &mut Mirror,
        _now: u64,
        mut fault: impl FnMut(usize) -> Option<StepOutcome>,
    ) {
        for deadline in &plan.deadlines {
            mirror.set_deadline(deadline);
        }
        for (index, step) in plan.steps.iter().enumerate() {
            let outcome = match fault(index) {
                // A lost reply: the kernel has carried out the step.
                Some(StepOutcome::Unknown) => {
                    self.execute(step);
                    StepOutcome::Unknown
                }
                Some(outcome) => outcome,
                None => self.execute(step),
            };
            mirror.commit(step, outcome);
        }
    }

    /// Whether exactly this is held under the key, including weights.
    pub(crate) fn holds(&self, desired: &VirtualServer) -> bool {
        self.servers.get(&desired.key).is_some_and(|held| {
            let reals: BTreeMap<_, _> = desired
                .real_servers
                .iter()
                .map(|real| ((real.address, real.port), real.weight))
                .collect();
            let held_reals: BTreeMap<_, _> = held
                .reals
                .iter()
                .map(|(id, real)| (*id, real.weight))
                .collect();
            *held.scheduler == *desired.scheduler.name()
                && held.persistence == desired.persistence
                && held.plain
                && held.reals.values().all(|real| real.plain)
                && reals == held_reals
        })
    }
}

impl Held {
    fn add(&mut self, real: &RealServer) -> StepOutcome {
        let id = (real.address, real.port);
        if self.reals.contains_key(&id) {
            return StepOutcome::AlreadyExists;
        }
        let new = HeldReal {
            weight: real.weight,
            plain: true,
            connections: 0,
        };
        self.reals.insert(id, new);
        StepOutcome::Done
    }

    fn edit(&mut self, id: (IpAddr, u16), weight: u32) -> StepOutcome {
        let Some(real) = self.reals.get_mut(&id) else {
            return StepOutcome::Missing;
        };
        (real.weight, real.plain) = (weight, true);
        StepOutcome::Done
    }
}

/// Plans until nothing is left to do, as the agent does; fails if that does not end.
pub(crate) fn settle(
    kernel: &mut Kernel,
    mirror: &mut Mirror,
    desired: Option<&VirtualServer>,
    key: &VirtualServerKey,
    mut now: u64,
) -> u64 {
    for _ in 0..20 {
        kernel.read_into(mirror, key, now);
        let plan = diff(desired, mirror, key, now, &OPTIONS);
        kernel.apply(&plan, mirror, now, |_| None);
        match plan.wake_at {
            None if plan.steps.is_empty() => return now,
            None => {}
            Some(at) => now = at,
        }
    }
    panic!("the plan never comes to an end");
}
