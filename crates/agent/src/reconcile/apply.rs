//! Sends steps to the kernel, and their results to the mirror.
//!
//! A virtual server is recorded as ours before it is created, and released after it is deleted. A failed step makes
//! only its own key unknown; the key is then read and tried again.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::mem::{Discriminant, discriminant};
use std::time::Duration;

use dataplane::conntrack::Flow;
use dataplane::host::Host;
use dataplane::ipvs::{Kernel, ServerReading, StepError};
use rustc_hash::FxHashSet;
use tokio::time::Instant;
use topology_core::mirror::{Mirror, StepOutcome, Trust};
use topology_core::model::Protocol;
use topology_core::plan::Step;
use topology_core::virtual_server::VirtualServerKey;

use super::reconciler::Reconciler;
use crate::metrics::record::DrainEnd;
use crate::node_warning::Topic;

/// The results of the steps of a pass.
#[derive(Debug, Default)]
pub(super) struct Applied {
    /// Few entries for any number of steps.
    pub(super) tallies: Vec<Tally>,
    /// From the first byte sent to the last acknowledgement processed.
    pub(super) took: Duration,
    /// Keys with a real server that begins to drain.
    pub(super) drained: BTreeSet<VirtualServerKey>,
}

/// The number of steps of one kind with one result.
#[derive(Debug)]
pub(super) struct Tally {
    kind: Discriminant<Step>,
    outcome: StepOutcome,
    /// The name of the kind.
    pub(super) step: &'static str,
    pub(super) times: u64,
}

impl Tally {
    /// The name of the result in metrics and logs.
    pub(super) fn result(&self) -> &'static str {
        outcome_name(self.outcome)
    }
}

impl Applied {
    fn count(&mut self, step: &Step, outcome: StepOutcome) {
        let kind = discriminant(step);
        let is_alike = |tally: &&mut Tally| tally.kind == kind && tally.outcome == outcome;
        // The kind of the previous step is the most likely one.
        match self.tallies.iter_mut().rev().find(is_alike) {
            Some(tally) => tally.times += 1,
            None => self.tallies.push(Tally {
                kind,
                outcome,
                step: step.as_str(),
                times: 1,
            }),
        }
    }

    /// All steps that were sent.
    pub(super) fn steps(&self) -> u64 {
        self.tallies.iter().map(|tally| tally.times).sum()
    }

    /// Steps of a kind that succeeded.
    pub(super) fn done(&self, step: &str) -> u64 {
        let of_kind = self.tallies.iter().filter(|tally| tally.step == step);
        let done = of_kind.filter(|tally| tally.outcome == StepOutcome::Done);
        done.map(|tally| tally.times).sum()
    }

    /// Steps that failed.
    pub(super) fn failed(&self) -> u64 {
        let failed = self
            .tallies
            .iter()
            .filter(|tally| tally.outcome != StepOutcome::Done);
        failed.map(|tally| tally.times).sum()
    }
}

impl<K: Kernel, H: Host> Reconciler<K, H> {
    /// Sends the steps and commits their results; `steps` is empty afterwards.
    pub(super) async fn apply(&mut self, steps: &mut Vec<Step>, applied: &mut Applied) {
        let started = Instant::now();
        self.write_deadlines();
        if steps.is_empty() {
            return;
        }
        self.prepare_for(steps).await;
        self.claim(steps);
        let allowed = steps
            .get(..self.crash_point.allows(steps.len()))
            .unwrap_or_default();
        let results = self.kernel.apply(allowed).await;
        self.crash_point.record_writes(allowed.len());
        let settled = self.settle(steps, &results, applied);
        applied.took += started.elapsed();
        self.after(settled, applied);
        steps.clear();
    }

    /// Records virtual servers that are about to be created; removes the steps of those that cannot be recorded.
    fn claim(&mut self, steps: &mut Vec<Step>) {
        let created = steps
            .iter()
            .filter(|step| matches!(step, Step::AddServer { .. }));
        let keys: Vec<VirtualServerKey> = created.map(|step| *step.key()).collect();
        let error = match self.write_claims(&keys) {
            Ok(()) if keys.is_empty() => return,
            Ok(()) => return self.warnings.set(Topic::Record, Vec::new()),
            Err(error) => error,
        };
        let keys: FxHashSet<VirtualServerKey> = keys.into_iter().collect();
        steps.retain(|step| !keys.contains(step.key()));
        let words = self.unwritable_record(&error);
        self.warnings.set(Topic::Record, vec![words.clone()]);
        for key in keys {
            self.record_failure(key, words.clone());
        }
    }

    /// Records `keys` as ours.
    pub(super) fn write_claims(&mut self, keys: &[VirtualServerKey]) -> io::Result<()> {
        let mut held = self.mirror.ours().copied();
        self.host.claim(keys, &mut held)
    }

    /// Commits all results to the mirror.
    fn settle(
        &mut self,
        steps: &[Step],
        results: &[Result<(), StepError>],
        applied: &mut Applied,
    ) -> Settled {
        let now = self.now();
        let mut settled = Settled::default();
        for (at, (step, result)) in steps.iter().zip(results).enumerate() {
            if let Some(flow) = flow(step) {
                settled.flows.insert(flow, step.clone());
                continue;
            }
            let outcome = result
                .as_ref()
                .map_or_else(|error| error.outcome, |()| StepOutcome::Done);
            tracing::debug!(result = outcome_name(outcome), "{step}");
            applied.count(step, outcome);
            if let Some(end) = drain_end(&self.mirror, step, outcome) {
                self.metrics.drain_ended(end);
            }
            if outcome == StepOutcome::Done {
                self.trash.record(step, &self.mirror, now);
            }
            settled.flows.extend(unserved(&self.mirror, step, outcome));
            self.record_ended(step, outcome);
            self.mirror.commit(step, outcome);
            self.prove_scheduler(step, outcome);
            if let Step::AddServer { key, .. } = step {
                let behind = steps.iter().skip(at + 1);
                let reals = behind.take_while(|next| next.key() == key).count();
                self.mirror.expect(key, reals);
            }
            settled.record(step, outcome);
            if let Err(error) = result {
                self.schedulers.record(step, error);
                settled.fail(step, error);
            }
            if let (Step::AddServer { key, .. }, StepOutcome::Unknown) = (step, outcome) {
                // If it was created, then by this step.
                self.mirror.own(*key);
            }
        }
        settled
    }

    fn prove_scheduler(&mut self, step: &Step, outcome: StepOutcome) {
        if let (Step::AddServer { key, .. } | Step::EditServer { key, .. }, StepOutcome::Done) =
            (step, outcome)
            && let Some(held) = self.mirror.get(key)
        {
            self.schedulers.prove(&held.scheduler);
        }
    }

    /// Updates the record, connection tracking and retries.
    fn after(&mut self, settled: Settled, applied: &mut Applied) {
        let Settled {
            failures,
            touched,
            released,
            drained,
            flows,
            ..
        } = settled;
        for key in &touched {
            match failures.get(key) {
                Some(_) if self.schedulers.refuses(key) => {}
                Some(error) => self.record_failure(*key, error.clone()),
                None => self.record_success(key),
            }
        }
        let healthy = drained
            .into_iter()
            .filter(|key| !failures.contains_key(key));
        applied.drained.extend(healthy);
        self.release(&released);
        self.write_deadlines();
        if !flows.is_empty() {
            self.forget(flows);
        }
    }

    /// Whether a key is recorded as ours and known not to exist.
    pub(super) fn is_void(&self, key: &VirtualServerKey) -> bool {
        self.mirror.is_ours(key)
            && self.mirror.get(key).is_none()
            && self.mirror.trust(key) == Trust::Known
    }

    /// Releases keys that do not exist: another program may create a virtual server with that key.
    pub(super) fn disown(&mut self, keys: &[VirtualServerKey]) {
        for key in keys {
            self.mirror
                .commit(&Step::DeleteServer { key: *key }, StepOutcome::Missing);
        }
        self.release(keys);
    }

    fn release(&mut self, keys: &[VirtualServerKey]) {
        if !keys.is_empty() {
            self.write_releases(keys);
        }
    }

    /// Writes releases that could not be written before, so that a restart does not find keys that are not ours.
    pub(super) fn complete_record(&mut self) {
        self.write_releases(&[]);
    }

    fn write_releases(&mut self, keys: &[VirtualServerKey]) {
        let released: FxHashSet<&VirtualServerKey> = keys.iter().collect();
        let held = self.mirror.ours().filter(|key| !released.contains(key));
        let result = self.host.release(keys, &mut held.copied());
        let words = result.err().map(|error| self.unwritable_record(&error));
        self.warnings
            .set(Topic::Record, words.into_iter().collect());
    }

    pub(super) fn unwritable_record(&self, error: &io::Error) -> String {
        format!(
            "the ownership record cannot be written: {error}; make room in, or write access to, {}",
            self.config.state_dir.display()
        )
    }

    /// Stores a virtual server that was read in the mirror.
    pub(super) fn observe(&mut self, key: VirtualServerKey, reading: Option<ServerReading>) {
        match reading {
            Some(ServerReading {
                observed,
                connections,
                ..
            }) => {
                self.schedulers.prove(&observed.scheduler);
                self.mirror.observe(key, Some((observed, &connections)));
            }
            None => self.mirror.observe(key, None),
        }
    }
}

/// The combined results of some steps.
#[derive(Debug, Default)]
struct Settled {
    /// The first failure of each key; later ones are its consequences.
    failures: BTreeMap<VirtualServerKey, String>,
    touched: FxHashSet<VirtualServerKey>,
    last: Option<VirtualServerKey>,
    /// Keys to release.
    released: Vec<VirtualServerKey>,
    /// Keys with a real server that begins to drain.
    drained: BTreeSet<VirtualServerKey>,
    /// Connection tracking entries of deleted real servers, with the steps to delete them.
    flows: BTreeMap<Flow, Step>,
}

impl Settled {
    /// Steps of one key are contiguous, so the last key is the most likely one.
    fn touch(&mut self, key: VirtualServerKey) {
        if self.last != Some(key) {
            self.last = Some(key);
            self.touched.insert(key);
        }
    }

    fn record(&mut self, step: &Step, outcome: StepOutcome) {
        self.touch(*step.key());
        match (step, outcome) {
            (Step::DeleteServer { key }, StepOutcome::Done | StepOutcome::Missing)
            | (Step::AddServer { key, .. }, StepOutcome::AlreadyExists | StepOutcome::Failed) => {
                self.released.push(*key);
            }
            (Step::DrainReal { key, .. }, StepOutcome::Done) => drop(self.drained.insert(*key)),
            _ => {}
        }
    }

    fn fail(&mut self, step: &Step, error: &StepError) {
        let gone = matches!(step, Step::DeleteServer { .. } | Step::DeleteReal { .. });
        if gone && error.outcome == StepOutcome::Missing {
            return;
        }
        let words = || format!("`{step}` failed: {}", error.text);
        self.failures.entry(*step.key()).or_insert_with(words);
    }
}

/// How a drain ends by this step, if it does. Call it before the mirror commits the step.
fn drain_end(mirror: &Mirror, step: &Step, outcome: StepOutcome) -> Option<DrainEnd> {
    match step {
        Step::DeleteReal { key, address, port } if outcome == StepOutcome::Done => {
            let drain = mirror.drain(key, *address, *port)?;
            let idle = drain.connections == Some(0);
            Some(if idle {
                DrainEnd::Idle
            } else {
                DrainEnd::Deadline
            })
        }
        Step::EditReal { key, real } if outcome == StepOutcome::Done => {
            mirror.drain(key, real.address, real.port)?;
            Some(DrainEnd::Returned)
        }
        Step::AddServer { .. }
        | Step::EditServer { .. }
        | Step::DeleteServer { .. }
        | Step::AddReal { .. }
        | Step::EditReal { .. }
        | Step::DrainReal { .. }
        | Step::DeleteReal { .. }
        | Step::DeleteFlows { .. } => None,
    }
}

/// The connection tracking entries that a step makes obsolete.
fn flow(step: &Step) -> Option<Flow> {
    match step {
        Step::DeleteFlows {
            key:
                VirtualServerKey::Address {
                    address: service,
                    port: service_port,
                    ..
                },
            address,
            port,
        } => Some(Flow {
            service: (*service, *service_port),
            server: (*address, *port),
        }),
        Step::DeleteFlows {
            key: VirtualServerKey::FirewallMark { .. },
            address,
            port,
        } => Some(Flow::of_server((*address, *port))),
        Step::AddServer { .. }
        | Step::EditServer { .. }
        | Step::DeleteServer { .. }
        | Step::AddReal { .. }
        | Step::EditReal { .. }
        | Step::DrainReal { .. }
        | Step::DeleteReal { .. } => None,
    }
}

/// The connection tracking entries of a UDP virtual server that had no real server so far. Call it before the mirror
/// commits the step.
///
/// Datagrams that passed while IPVS did not take them have an entry without an endpoint, and a client that keeps its
/// port keeps it: rules of NAT, such as masquerading, do not apply to its datagrams any more.
fn unserved(mirror: &Mirror, step: &Step, outcome: StepOutcome) -> Option<(Flow, Step)> {
    let Step::AddReal { key, .. } = step else {
        return None;
    };
    let VirtualServerKey::Address {
        protocol: Protocol::Udp,
        address,
        port,
    } = *key
    else {
        return None;
    };
    let is_first = mirror.get(key)?.real_servers.is_empty();
    let (service, key) = ((address, port), *key);
    (is_first && outcome == StepOutcome::Done).then_some((
        Flow {
            service,
            server: service,
        },
        Step::DeleteFlows { key, address, port },
    ))
}

/// The name of a result in metrics and logs.
pub(super) fn outcome_name(outcome: StepOutcome) -> &'static str {
    match outcome {
        StepOutcome::Done => "done",
        StepOutcome::AlreadyExists => "exists",
        StepOutcome::Missing => "missing",
        StepOutcome::Failed => "failed",
        StepOutcome::Unknown => "unknown",
    }
}
