//! One pass: compares the desired state of some Services with the kernel and writes the differences.

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
use topology_core::snapshot::Snapshot;
use topology_core::virtual_server::VirtualServerKey;

use super::apply::Applied;
use super::counts::KernelTotals;
use super::elements::comes_before;
use super::programmable::ProgrammableServer;
use super::reconciler::{Item, Reconciler};

/// Steps that are sent before the next ones are computed: few enough for little memory, enough to keep the kernel busy.
const CHUNK: usize = 1024;

/// Virtual servers that are read from the kernel before the loop handles other triggers.
pub(super) const SLICE: usize = 128;

/// Interval of checks of a draining real server's connections, in milliseconds.
pub(super) const DRAIN_POLL: u64 = 5_000;

/// The interval while deletions are postponed, and for drains without a deadline (KP-GT-02).
pub(super) const PATIENT_POLL: u64 = 60_000;

/// Why a virtual server that needs elements of the tables is not created.
const WAITS_FOR_TABLES: &str = "nftables does not have its masquerading and source ranges yet";

/// The desired state of each key; `None` deletes it.
pub(super) type DesiredKeys = BTreeMap<VirtualServerKey, Option<ProgrammableServer>>;

/// The work of a pass.
#[derive(Debug, Default)]
pub(super) struct Work {
    /// Services to resolve.
    pub(super) services: BTreeSet<ObjectName>,
    /// Keys to compare, of any Service.
    pub(super) keys: BTreeSet<VirtualServerKey>,
    /// Whether to compare routes and tables even if no address was added or removed.
    pub(super) host: bool,
}

impl Work {
    /// Whether the pass would do nothing.
    pub(super) fn is_nothing(&self) -> bool {
        self.services.is_empty() && self.keys.is_empty() && !self.host
    }
}

/// The result of a pass.
#[derive(Debug, Default)]
pub(super) struct Done {
    pub(super) services: usize,
    /// The Service, if there was only one.
    pub(super) only: Option<ObjectName>,
    pub(super) applied: Applied,
    /// Number of writes to routes and tables.
    pub(super) host_writes: usize,
    /// Time for resolving and comparing.
    pub(super) computing: Duration,
    pub(super) v4: bool,
    pub(super) v6: bool,
    pub(super) completion: Completion,
}

/// How much of what a pass was for the kernel has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Completion {
    All,
    /// All but the tables, which are being written.
    AllButTables,
    /// Something failed, or waits for more than the tables.
    #[default]
    Part,
}

impl Done {
    /// Whether the kernel was changed.
    pub(super) fn achieved_something(&self) -> bool {
        self.host_writes > 0 || self.applied.steps() > self.applied.failed()
    }

    /// Number of all writes.
    pub(super) fn writes(&self) -> u64 {
        self.applied.steps() + u64::try_from(self.host_writes).unwrap_or(u64::MAX)
    }
}

impl<K: Kernel, H: Host> Reconciler<K, H> {
    /// The pass after a change of the input.
    pub(super) async fn pass_dirty(&mut self) {
        self.pass_changes().await;
        self.serve_waiting_for_marks().await;
    }

    pub(super) async fn pass_changes(&mut self) {
        let dirty = self.index.snapshot_mut().take_dirty(&self.me.node);
        let taken = self.pending.take_up();
        if dirty.is_empty() {
            return;
        }
        let work = Work {
            services: dirty.services,
            host: dirty.routes,
            ..Work::default()
        };
        let done = self.pass(work).await;
        self.report(&done, Some(&taken));
    }

    /// The pass over all desired keys and all keys in the kernel.
    pub(super) async fn full_pass(&mut self) -> Done {
        self.release_unused_marks();
        drop(self.index.snapshot_mut().take_dirty(&self.me.node));
        let taken = self.pending.take_up();
        let mut work = Work {
            services: names(self.index.snapshot()),
            host: true,
            ..Work::default()
        };
        // If a file could not be read, its Services must not be deleted as unknown.
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
        self.report(&done, Some(&taken));
        self.serve_waiting_for_marks().await;
        done
    }

    /// The pass over due keys: failed ones, and those with draining real servers. Reads their state from the kernel
    /// first.
    pub(super) async fn handle_due(&mut self) {
        let mut work = Work::default();
        for item in self.agenda.due(self.now()) {
            match item {
                Item::Start => return self.start().await,
                // Nothing is written before the first pass.
                Item::Routes | Item::SourcelessRoutes | Item::Tables => {
                    work.host |= self.startup.is_done();
                }
                Item::RoutesRead => {
                    self.read_routes().await;
                    work.host |= self.startup.is_done();
                }
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
        self.serve_waiting_for_marks().await;
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
        // A Service may ask for the address of a gateway that became known a moment ago.
        if self.infrastructure.has_changed() {
            services.extend(self.update_infrastructure());
        }
        services.extend(self.update_disconnected(&services));
        if work.host {
            services.extend(self.update_node_port_addresses());
        }
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
        self.prepare_for_growth(&desired).await;
        self.write_marks();
        let host_change = self.host_change(work.host);
        let needs_host = host_change.is_needed();
        done.host_writes += self.apply_before_servers(&host_change).await;
        self.try_schedulers(&mut desired, &mut done).await;
        self.program(desired, &mut done).await;
        let mut instead = self.fall_back();
        self.read_again(&mut instead).await;
        self.program(instead, &mut done).await;
        done.host_writes += self.apply_after_servers(host_change).await;
        self.delete_flows();
        self.publish_ports();
        self.counts
            .replace(&before, &KernelTotals::of(&self.mirror, &keys));
        done.completion = self.completion(&keys, needs_host);
        done
    }

    /// Reads unknown keys from the kernel.
    pub(super) async fn read_again(&mut self, desired: &mut DesiredKeys) {
        let unknown = desired
            .keys()
            .filter(|key| self.mirror.trust(key) == Trust::Unknown);
        for key in unknown.copied().collect::<Vec<_>>() {
            match self.kernel.read(&key).await {
                Ok(reading) => self.observe(key, reading),
                Err(error) => {
                    desired.remove(&key);
                    // The retry reads it again; an overdue check would come before.
                    self.agenda.visit(&Item::Server(key), None);
                    self.record_failure(key, error.to_string());
                }
            }
        }
    }

    /// Applies the desired state of every key. A real server whose weight was just set to 0 is checked at once, unless
    /// deletions are postponed: without connections it need not stay.
    pub(super) async fn program(&mut self, desired: DesiredKeys, done: &mut Done) {
        let mut leaving = self.write(desired, done).await;
        if self.puts_off() {
            return;
        }
        leaving.retain(|key, _| done.applied.drained.contains(key));
        for key in leaving.keys() {
            self.read_real_servers(*key).await;
        }
        self.write(leaving, done).await;
    }

    /// Whether deleting real servers now would make additions expensive.
    fn puts_off(&self) -> bool {
        let waiting = self.counts.v4.draining + self.counts.v6.draining;
        self.trash.puts_off(waiting, self.now())
    }

    /// The options for computing the difference now.
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

    /// Reads the real servers of a virtual server in the mirror. If that fails, the next check of the key reports it.
    async fn read_real_servers(&mut self, key: VirtualServerKey) {
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

    /// Writes the differences, a chunk of steps at a time. Returns the desired state of keys with real servers that
    /// begin to drain.
    async fn write(&mut self, desired: DesiredKeys, done: &mut Done) -> DesiredKeys {
        let options = self.options();
        let mut leaving = DesiredKeys::new();
        let mut steps = Vec::new();
        let mut void = Vec::new();
        let mut computing = Instant::now();
        for (key, target) in self.in_order(desired) {
            if target.is_some() && !(self.may_touch(&key) && self.is_protected(&key)) {
                // It failed; an overdue check of its drains would come before each retry.
                self.agenda.visit(&Item::Server(key), None);
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
            self.unsaved_deadlines.extend(plan.deadlines);
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
    ) -> impl Iterator<Item = (VirtualServerKey, Option<ProgrammableServer>)> + use<K, H> {
        let early = |key: &VirtualServerKey| self.desired.owner(key).is_some_and(comes_first);
        let (first, rest): (Vec<_>, Vec<_>) = desired.into_iter().partition(|(key, _)| early(key));
        first.into_iter().chain(rest)
    }

    /// Whether the key is unused, ours, or to be taken over.
    fn may_touch(&mut self, key: &VirtualServerKey) -> bool {
        if self.mirror.get(key).is_none() || self.mirror.is_ours(key) {
            return true;
        }
        if !self.config.adopt {
            self.record_failure(*key, foreign_words(key));
            return false;
        }
        match self.write_claims(&[*key]) {
            Ok(()) => {
                tracing::info!("taking over {key}");
                self.mirror.own(*key);
                true
            }
            Err(error) => {
                self.record_failure(*key, self.unwritable_record(&error));
                false
            }
        }
    }

    /// Whether nftables has the elements that must come before a new virtual server.
    fn is_protected(&mut self, key: &VirtualServerKey) -> bool {
        let is_new = self.mirror.get(key).is_none();
        let service = self.desired.owner(key).filter(|_| is_new);
        let service = service.and_then(|service| self.desired.service(service));
        let elements = service.into_iter().flat_map(|service| &service.elements);
        let first = elements.filter(|element| comes_before(key, element));
        let is_protected = self.host.tables_hold(&first.copied().collect::<Vec<_>>());
        if !is_protected {
            let now = self.now();
            // The reason is a warning of the node.
            self.agenda
                .failed(&Item::Server(*key), WAITS_FOR_TABLES.to_owned(), now);
        }
        is_protected
    }

    pub(super) fn record_success(&mut self, key: &VirtualServerKey) {
        let failure = self.agenda.succeeded(&Item::Server(*key));
        // Nothing was logged while it waited for the tables.
        if let Some(failure) = failure.filter(|failure| failure.error != WAITS_FOR_TABLES) {
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
        "a virtual server that is not ours has this {} and is left alone; remove it with `ipvsadm -D {key}`, or start \
         the agent with --adopt to take it over",
        match key {
            VirtualServerKey::Address { .. } => "address and port",
            VirtualServerKey::FirewallMark { .. } => "firewall mark",
        }
    )
}

/// The API server and the Services of kube-system: the rest of the node depends on them (PAIN-43).
fn comes_first(service: &ObjectName) -> bool {
    let ObjectName { namespace, name } = service;
    &**namespace == "kube-system" || (&**namespace == "default" && &**name == "kubernetes")
}

/// The names of all Services.
pub(super) fn names(snapshot: &Snapshot) -> BTreeSet<ObjectName> {
    let services = snapshot.services();
    services.map(|service| service.name.clone()).collect()
}
