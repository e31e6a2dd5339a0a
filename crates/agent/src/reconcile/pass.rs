//! One pass: what some Services ask for, against what the kernel holds of it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use cluster::event::Completeness;
use dataplane::host::Host;
use dataplane::ipvs::{Kernel, ListedServer};
use tokio::time::Instant;
use topology_core::mirror::{ObservedServer, Trust};
use topology_core::model::{Family, ObjectName};
use topology_core::plan::{self, Step};
use topology_core::resolve::{Resolution, resolve};
use topology_core::snapshot::Snapshot;
use topology_core::virtual_server::VirtualServerKey;

use super::apply::Applied;
use super::counts::KernelTotals;
use super::programmable::{Target, desired_service};
use super::reconciler::{Item, Reconciler};
use crate::agent_status::Contribution;

/// Steps that are sent before the next ones are worked out: few enough to stay small in memory,
/// many enough to keep the kernel busy.
const CHUNK: usize = 1024;

/// Virtual servers read from the kernel before the loop looks at its other triggers.
pub(super) const SLICE: usize = 128;

/// Between two looks at the connections of a draining real server, in milliseconds.
const DRAIN_POLL: u64 = 5_000;

/// The same while deletions are put off, and for what drains without a deadline (KP-GT-02).
const PATIENT_POLL: u64 = 60_000;

/// The target of each key; `None` deletes it.
pub(super) type DesiredKeys = BTreeMap<VirtualServerKey, Option<Target>>;

/// What a pass is about.
#[derive(Debug, Default)]
pub(super) struct Work {
    /// Services to resolve.
    pub(super) services: BTreeSet<ObjectName>,
    /// Keys to compare, whoever asks for them.
    pub(super) keys: BTreeSet<VirtualServerKey>,
    /// Whether routes and tables have to be looked at even if no address came or went.
    pub(super) host: bool,
}

impl Work {
    /// Whether a pass over it would do nothing.
    pub(super) fn is_nothing(&self) -> bool {
        self.services.is_empty() && self.keys.is_empty() && !self.host
    }
}

/// What a pass did.
#[derive(Debug, Default)]
pub(super) struct Done {
    pub(super) services: usize,
    /// The Service, if it was only one.
    pub(super) only: Option<ObjectName>,
    pub(super) applied: Applied,
    /// Routes and tables written.
    pub(super) host_writes: usize,
    /// Resolving and comparing.
    pub(super) computing: Duration,
    pub(super) v4: bool,
    pub(super) v6: bool,
}

impl Done {
    /// Whether the kernel took anything.
    pub(super) fn achieved_something(&self) -> bool {
        self.host_writes > 0 || self.applied.steps() > self.applied.failed()
    }

    /// Everything that was written.
    pub(super) fn writes(&self) -> u64 {
        self.applied.steps() + u64::try_from(self.host_writes).unwrap_or(u64::MAX)
    }
}

impl<K: Kernel, H: Host> Reconciler<K, H> {
    /// The pass after a change of the input.
    pub(super) async fn pass_dirty(&mut self) {
        let dirty = self.index.snapshot_mut().take_dirty(&self.me.node);
        let since = self.pending.take_up();
        if dirty.is_empty() {
            return;
        }
        let work = Work {
            services: dirty.services,
            host: dirty.routes,
            ..Work::default()
        };
        let done = self.pass(work).await;
        self.report(&done, since);
    }

    /// The pass over everything desired and everything the kernel holds.
    pub(super) async fn full_pass(&mut self) -> Done {
        drop(self.index.snapshot_mut().take_dirty(&self.me.node));
        let since = self.pending.take_up();
        let mut work = Work {
            services: names(self.index.snapshot()),
            host: true,
            ..Work::default()
        };
        // While a file could not be read, what it may ask for must not be deleted as unknown.
        if self.index.completeness() == Some(Completeness::Whole) {
            work.keys = self
                .mirror
                .keys()
                .filter(|key| self.mirror.is_ours(key))
                .copied()
                .collect();
        }
        self.warn_of_claims();
        let done = self.pass(work).await;
        self.report(&done, since);
        done
    }

    /// Keys whose time has come: failed ones, and those with draining real servers. Their state in
    /// the kernel is read again first.
    pub(super) async fn handle_due(&mut self) {
        let mut work = Work::default();
        for item in self.agenda.due(self.now()) {
            match item {
                Item::Start => return self.start().await,
                // Nothing is written before the first pass.
                Item::Routes | Item::Tables => work.host |= self.startup.is_done(),
                Item::TablesRead => self.end_observe().await,
                Item::Flows => self.poll_flow_deletion(),
                Item::Decision(key) => {
                    self.agenda.visit(&item, None);
                    work.services.extend(self.desired.owner(&key).cloned());
                }
                Item::Server(key) => {
                    self.mirror.mark_unknown(key);
                    work.keys.insert(key);
                }
            }
        }
        if work.is_nothing() {
            return;
        }
        let done = self.pass(work).await;
        self.report(&done, None);
    }

    /// Resolves, compares, writes.
    pub(super) async fn pass(&mut self, work: Work) -> Done {
        let started = Instant::now();
        let owners = work
            .keys
            .iter()
            .filter_map(|key| self.desired.owner(key).cloned());
        let mut services = work.services;
        services.extend(owners.collect::<Vec<_>>());
        let mut desired = DesiredKeys::new();
        self.resolve_all(&services, &mut desired);
        for key in work.keys {
            desired.entry(key).or_insert(None);
        }
        let mut done = Done {
            services: services.len(),
            computing: started.elapsed(),
            ..Done::default()
        };
        done.only = services.pop_first().filter(|_| services.is_empty());
        done.v4 = desired.keys().any(|key| key.family() == Family::V4);
        done.v6 = desired.keys().any(|key| key.family() == Family::V6);

        let keys: Vec<_> = desired.keys().copied().collect();
        let before = KernelTotals::of(&self.mirror, &keys);
        self.read_again(&mut desired).await;
        let host_change = self.host_change(work.host);
        done.host_writes += self.apply_before_servers(&host_change).await;
        self.program(desired, &mut done).await;
        let mut instead = self.fall_back();
        self.read_again(&mut instead).await;
        self.program(instead, &mut done).await;
        done.host_writes += self.apply_after_servers(host_change).await;
        self.counts
            .replace(&before, &KernelTotals::of(&self.mirror, &keys));
        done
    }

    /// Reads the kernel's state of keys that the mirror cannot vouch for.
    async fn read_again(&mut self, desired: &mut DesiredKeys) {
        let unknown = desired
            .keys()
            .filter(|key| self.mirror.trust(key) == Trust::Unknown);
        for key in unknown.copied().collect::<Vec<_>>() {
            match self.kernel.read(&key).await {
                Ok(reading) => self.observe(key, reading),
                Err(error) => {
                    desired.remove(&key);
                    // The retry reads it again; a visit that is overdue would come before.
                    self.agenda.visit(&Item::Server(key), None);
                    self.record_failure(key, error.to_string());
                }
            }
        }
    }

    /// Brings every key to the desired state. A real server that has just lost its weight is looked at
    /// at once, unless deletions are better put off: without connections it need not stay.
    async fn program(&mut self, desired: DesiredKeys, done: &mut Done) {
        let mut leaving = self.write(desired, done).await;
        if self.puts_off() {
            return;
        }
        leaving.retain(|key, _| done.applied.drained.contains(key));
        for key in leaving.keys() {
            self.look(*key).await;
        }
        self.write(leaving, done).await;
    }

    /// Whether deleting real servers now would make additions dear.
    fn puts_off(&self) -> bool {
        let waiting = self.counts.v4.draining + self.counts.v6.draining;
        self.drains.puts_off(waiting, self.now())
    }

    /// How a difference is made now.
    pub(super) fn options(&self) -> plan::DiffOptions<'static> {
        plan::DiffOptions {
            adopt: self.config.adopt,
            drain_poll: if self.puts_off() {
                PATIENT_POLL
            } else {
                DRAIN_POLL
            },
            wait_poll: PATIENT_POLL,
            unchosen: &[],
        }
    }

    /// Reads the real servers of a virtual server that the mirror knows. If that fails, the key's next
    /// visit reports it.
    async fn look(&mut self, key: VirtualServerKey) {
        let Some(held) = self.mirror.get(&key) else {
            return;
        };
        let observed = ObservedServer {
            scheduler: Arc::clone(&held.scheduler),
            real_servers: Vec::new(),
            ..*held
        };
        if let Ok(reading) = self.kernel.fill(ListedServer { key, observed }).await {
            self.observe(key, reading);
        }
    }

    /// Writes what differs, a chunk of steps at a time. Returns the desired state where real servers are
    /// to drain.
    async fn write(&mut self, desired: DesiredKeys, done: &mut Done) -> DesiredKeys {
        let options = self.options();
        let mut leaving = DesiredKeys::new();
        let mut steps = Vec::new();
        let mut void = Vec::new();
        let mut computing = Instant::now();
        for (key, target) in self.in_order(desired) {
            if target.is_some() && !self.may_touch(&key) {
                continue;
            }
            if target.is_none() && self.is_void(&key) {
                void.push(key);
            }
            let now = self.now();
            let options = plan::DiffOptions {
                unchosen: target.as_ref().map_or(&[], |target| &target.unchosen),
                ..options
            };
            let server = target.as_ref().map(|target| &target.server);
            let plan = plan::diff(server, &self.mirror, &key, now, &options);
            for deadline in &plan.deadlines {
                self.mirror.set_deadline(deadline);
            }
            self.drains.changed(plan.deadlines);
            self.agenda.visit(&Item::Server(key), plan.wake_at);
            if plan.steps.is_empty() {
                self.record_success(&key);
            }
            if plan.steps.iter().any(begins_to_drain) {
                leaving.insert(key, target);
            }
            steps.extend(plan.steps);
            if steps.len() >= CHUNK {
                done.computing += computing.elapsed();
                self.apply(&mut steps, &mut done.applied).await;
                computing = Instant::now();
            }
        }
        done.computing += computing.elapsed();
        self.disown(&void);
        self.apply(&mut steps, &mut done.applied).await;
        leaving
    }

    fn in_order(
        &self,
        desired: DesiredKeys,
    ) -> impl Iterator<Item = (VirtualServerKey, Option<Target>)> + use<K, H> {
        let early = |key: &VirtualServerKey| self.desired.owner(key).is_some_and(comes_first);
        let (first, rest): (Vec<_>, Vec<_>) = desired.into_iter().partition(|(key, _)| early(key));
        first.into_iter().chain(rest)
    }

    /// Whether the key is free, ours, or to be taken over.
    fn may_touch(&mut self, key: &VirtualServerKey) -> bool {
        if self.mirror.get(key).is_none() || self.mirror.is_ours(key) {
            return true;
        }
        if !self.config.adopt {
            self.record_failure(*key, foreign_words(key));
            return false;
        }
        match self.host.claim(&[*key]) {
            Ok(()) => {
                tracing::info!("taking over {key}");
                self.mirror.own(*key);
                true
            }
            Err(error) => {
                self.record_failure(
                    *key,
                    format!("the ownership record cannot be written: {error}"),
                );
                false
            }
        }
    }

    pub(super) fn resolve_all(
        &mut self,
        services: &BTreeSet<ObjectName>,
        desired: &mut DesiredKeys,
    ) {
        self.me.now = Some(self.clock.now());
        for service in services {
            let resolution = resolve(self.index.snapshot(), &self.me, service);
            Arc::make_mut(&mut self.me.memory).learn(service, &resolution);
            self.record(service, resolution, desired);
        }
    }

    /// Stores what a Service asks for.
    fn record(&mut self, service: &ObjectName, resolution: Resolution, desired: &mut DesiredKeys) {
        let resolve_again_at = resolution.resolve_again_at;
        let now = self.clock.now();
        self.aggregate
            .replace(service, Contribution::of(&resolution), now);
        let (asked, servers) = desired_service(service, resolution, &self.me, &self.addresses);
        for finding in self.desired.new_findings(service, &asked) {
            tracing::warn!("{finding}");
        }
        let due = resolve_again_at.map(|at| self.due_at(at));
        for (key, due) in asked
            .keys
            .iter()
            .zip(std::iter::once(due).chain(std::iter::repeat(None)))
        {
            self.agenda.visit(&Item::Decision(*key), due);
        }
        for orphan in self.desired.replace(service, asked) {
            self.agenda.visit(&Item::Decision(orphan), None);
            self.schedulers.set_lacking(orphan, None);
            desired.entry(orphan).or_insert(None);
        }
        for target in &servers {
            self.schedulers.set_lacking(target.server.key, target.lacks);
        }
        desired.extend(
            servers
                .into_iter()
                .map(|target| (target.server.key, Some(target))),
        );
    }

    /// A moment of the calendar on the loop's clock; one that has passed is now.
    fn due_at(&self, moment: i64) -> u64 {
        let ahead = moment.saturating_sub(self.clock.now());
        self.now().saturating_add(u64::try_from(ahead).unwrap_or(0))
    }

    pub(super) fn record_success(&mut self, key: &VirtualServerKey) {
        if let Some(failure) = self.agenda.succeeded(&Item::Server(*key)) {
            tracing::info!(
                attempts = failure.attempts,
                "{key} is as it should be again"
            );
        }
    }

    pub(super) fn record_failure(&mut self, key: VirtualServerKey, error: String) {
        let now = self.now();
        let line = self.desired.owner(&key).map_or_else(
            || format!("{key}: {error}"),
            |service| format!("Service {service} ({key}): {error}"),
        );
        if self.agenda.failed(&Item::Server(key), error, now) {
            tracing::warn!("{line}");
        }
    }
}

fn begins_to_drain(step: &Step) -> bool {
    matches!(step, Step::DrainReal { .. })
}

pub(super) fn foreign_words(key: &VirtualServerKey) -> String {
    format!(
        "a virtual server that is not ours has this address and port and is left alone; remove it with \
         `ipvsadm -D {key}`, or start the agent with --adopt to take it over"
    )
}

/// The API server and the system's own Services: the rest of the node waits for them (PAIN-43).
fn comes_first(service: &ObjectName) -> bool {
    let ObjectName { namespace, name } = service;
    &**namespace == "kube-system" || (&**namespace == "default" && &**name == "kubernetes")
}

/// The names of all Services.
pub(super) fn names(snapshot: &Snapshot) -> BTreeSet<ObjectName> {
    let services = snapshot.services();
    services.map(|service| service.name.clone()).collect()
}
