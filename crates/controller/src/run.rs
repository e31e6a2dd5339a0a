//! The loop: applies changes to the [`State`], and writes its plan while this replica leads.

mod confirmed_names;
mod conflict_log;
mod follow;
#[cfg(test)]
mod tests;
mod write;
mod write_event;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use anyhow::{Context as _, bail};
use jiff::Timestamp;
use kube_io::{Access, ApiError, Connection, Fault};
use serde_json::Value;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval};
use topology_core::model::ObjectName;

use crate::budget::Budget;
use crate::cli::{Args, PodNamespaces};
use crate::event_recorder::{EventRecorder, HINTS_LEFT, WriteResult};
use crate::leader_election::{ElectionThread, LeaseIdentity};
use crate::log_once::LogOnce;
use crate::metrics::Metrics;
use crate::serve::{Ready, serve};
use crate::state::{Collection, NewEvent, State, Write, WriteKind};
use confirmed_names::CONFIRM;
use conflict_log::ConflictLog;
use follow::{Followed, Update, follow, resource};
use write_event::write_event;

/// The interval between writes; changes are collected meanwhile.
const TICK: Duration = Duration::from_secs(1);
/// How many PodMaps and PodLocators are written at the same time: many, because the server may be far away.
const POD_WRITES_AT_ONCE: usize = 16;
const LEASE: &str = "ipvs-topo-controller";
const USER_AGENT: &str = concat!("ipvs-topo-controller/", env!("CARGO_PKG_VERSION"));

/// Runs until SIGTERM or SIGINT.
pub fn run(args: &Args) -> anyhow::Result<()> {
    telemetry::raise_file_limit();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("starting the runtime")?;
    runtime.block_on(run_until_stopped(args))
}

async fn run_until_stopped(args: &Args) -> anyhow::Result<()> {
    let access = match &args.kubeconfig {
        Some(path) => Access::kubeconfig(path, USER_AGENT),
        None => Access::environment(USER_AGENT),
    };
    let connection = Connection::open(&access).await?;
    tracing::info!(server = connection.server(), "started");
    let (ready, metrics) = (Ready::default(), Metrics::default());
    let (lead, leads) = watch::channel(None);
    let identity = identity(args);
    let event_recorder = EventRecorder::new(&identity.me);
    let followed = followed(args);
    let mut election = ElectionThread::start(access, connection.clone(), identity, lead)?;
    let working = Loop {
        connection: connection.clone(),
        state: State::new(args.state_options()),
        budget: Budget::new(Duration::ZERO),
        event_recorder,
        epoch: Instant::now(),
        unlisted: followed.iter().cloned().collect(),
        followed,
        write_hints: args.write_hints,
        leads,
        ready: ready.clone(),
        metrics: metrics.clone(),
        write_log: LogOnce::default(),
        event_log: LogOnce::default(),
        left_out: BTreeSet::new(),
        unread: BTreeSet::new(),
        conflicts: ConflictLog::default(),
        dirty: true,
    };
    let stop = telemetry::stop_signal().context("signals cannot be received")?;
    let ended = tokio::select! {
        ended = serve(args.bind_address, ready, metrics, connection) => ended,
        ended = working.run() => ended,
        ended = election.ended() => bail!("leader election exited: {ended:?}"),
        () = stop => Ok(()),
    };
    // The loop is dropped by now, so nothing is written after the Lease is released.
    election.stop().await.context("leader election failed")?;
    ended
}

fn followed(args: &Args) -> Vec<Followed> {
    let mut followed: Vec<Followed> = Collection::ALWAYS.map(Followed::from).to_vec();
    if args.write_hints {
        followed.push(Collection::Slices.into());
    }
    match args.pod_namespaces() {
        None => {}
        Some(PodNamespaces::All) => followed.extend(Collection::FOR_PODS.map(Followed::from)),
        Some(PodNamespaces::Only(namespaces)) => {
            let written = [Collection::PodMaps, Collection::PodLocators];
            followed.extend(written.map(Followed::from));
            followed.extend(namespaces.into_iter().map(|namespace| Followed {
                collection: Collection::Pods,
                namespace: Some(namespace),
            }));
        }
    }
    followed
}

fn identity(args: &Args) -> LeaseIdentity {
    let process = std::process::id();
    let started = Timestamp::now().as_nanosecond();
    let name = args.name.as_deref().unwrap_or("controller");
    LeaseIdentity {
        namespace: args.namespace.clone(),
        name: LEASE.to_owned(),
        me: format!("{name}_{process}_{started}"),
    }
}

/// Whether an object has changed since it was read. The watch reports it, and the next plan writes again.
fn is_outdated(write: &Write, fault: Fault) -> bool {
    match write.kind {
        WriteKind::Merge | WriteKind::Delete => {
            matches!(fault, Fault::Conflict | Fault::NotFound)
        }
        WriteKind::Create => {
            Collection::FOR_PODS.contains(&write.collection) && fault == Fault::AlreadyExists
        }
        WriteKind::Replace => {
            Collection::FOR_PODS.contains(&write.collection)
                && matches!(fault, Fault::Conflict | Fault::NotFound)
        }
        WriteKind::Status => false,
    }
}

/// Returns the entries that are not in `logged`, and sets `logged` to all keys.
fn unlogged<'p>(
    logged: &mut BTreeSet<String>,
    present: &'p BTreeMap<String, String>,
) -> Vec<(&'p String, &'p String)> {
    let before = std::mem::replace(logged, present.keys().cloned().collect());
    let new = present.iter().filter(|(node, _)| !before.contains(*node));
    new.collect()
}

struct Loop {
    connection: Connection,
    state: State,
    budget: Budget,
    event_recorder: EventRecorder,
    epoch: Instant,
    followed: Vec<Followed>,
    write_hints: bool,
    /// Collections whose first list is not complete.
    unlisted: BTreeSet<Followed>,
    leads: watch::Receiver<Option<Instant>>,
    ready: Ready,
    metrics: Metrics,
    write_log: LogOnce,
    event_log: LogOnce,
    /// The Nodes that are left out of the map, as logged.
    left_out: BTreeSet<String>,
    /// The Nodes whose reports cannot be read completely, as logged.
    unread: BTreeSet<String>,
    /// The Pods that report an address of another Pod, as logged.
    conflicts: ConflictLog,
    /// Whether a plan may have writes: set by changes, cleared by an empty plan.
    dirty: bool,
}

impl Loop {
    async fn run(mut self) -> anyhow::Result<()> {
        let (sender, mut updates) = mpsc::channel(64);
        let mut tasks = JoinSet::new();
        for followed in self.followed.clone() {
            let connection = self.connection.clone();
            let resource = resource(&followed, self.write_hints);
            let sender = sender.clone();
            tasks.spawn(follow(connection, followed, resource, CONFIRM, sender));
        }
        let mut tick = interval(TICK);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut was_leader = false;
        loop {
            tokio::select! {
                Some(update) = updates.recv() => self.apply(update),
                Some(ended) = tasks.join_next() => bail!("a watch task exited: {ended:?}"),
                _ = tick.tick() => {
                    let leads = self.leads();
                    if leads != was_leader {
                        tracing::info!("{}", if leads { "acquired leadership" } else { "lost leadership" });
                        (was_leader, self.dirty) = (leads, true);
                        // Another replica may have written since.
                        self.event_recorder.forget();
                        self.state.forget();
                        self.metrics.set_address_conflicts(0);
                    }
                    self.metrics.set_leader(leads, self.state.node_count());
                    self.metrics.set_hints(self.state.hint_counts());
                    if leads && self.is_informed() {
                        self.lead().await;
                    }
                }
            }
        }
    }

    /// Whether the initial lists are complete that every controller needs.
    fn is_informed(&self) -> bool {
        self.has_listed(&Collection::ALWAYS)
    }

    fn has_listed(&self, needed: &[Collection]) -> bool {
        let mut unlisted = self.unlisted.iter();
        !unlisted.any(|followed| needed.contains(&followed.collection))
    }

    fn leads(&self) -> bool {
        self.leads
            .borrow()
            .is_some_and(|until| Instant::now() < until)
    }

    fn apply(&mut self, update: Update) {
        match update {
            Update::Applied(collection, object) => {
                self.dirty |= self.state.apply(collection, object);
            }
            Update::Deleted(collection, name) => {
                self.dirty |= self.state.delete(collection, &name);
                if collection == Collection::PodLocators {
                    // The garbage collector may delete it before the watch of Pods reports that the Pod is gone.
                    self.budget.hold(self.epoch.elapsed(), collection, name);
                }
            }
            Update::Listed(followed, names) => {
                let collection = followed.collection;
                let known = self.state.names(collection);
                for gone in known.difference(&names).filter(|name| followed.has(name)) {
                    self.dirty |= self.state.delete(collection, gone);
                }
                self.state.listed(collection);
                self.ended_list(&followed);
            }
            Update::Failed(followed) => {
                self.metrics.count_watch_failure();
                // Without Services the map lacks only the labels of their annotations.
                if followed.collection == Collection::Services {
                    self.ended_list(&followed);
                }
            }
        }
    }

    fn ended_list(&mut self, followed: &Followed) {
        self.dirty |= self.unlisted.remove(followed);
        if self.is_informed() && !self.ready.is() {
            tracing::info!("initial lists are complete");
            self.ready.set();
        }
    }

    async fn lead(&mut self) {
        if self.dirty {
            let (seen, incomplete) = self.state.fallbacks();
            let now = Timestamp::now().as_millisecond();
            let dropped = self.event_recorder.observe(now, &seen, &incomplete);
            if dropped > 0 {
                tracing::warn!(
                    dropped,
                    "too many fallbacks at once; some Events are dropped"
                );
            }
            self.record_hint_events(now);
        }
        if self.dirty || self.state.waits(Timestamp::now().as_millisecond()) {
            self.write().await;
        }
        if self.has_listed(&Collection::FOR_PODS) {
            self.write_pods().await;
            self.log_conflicts();
        }
        self.write_events().await;
    }

    /// Records Events about hints.
    fn record_hint_events(&mut self, now: i64) {
        for event in self.state.decide_hints() {
            let (service, note) = (&event.key.0, &event.note);
            if event.key.1 == HINTS_LEFT {
                tracing::warn!(%service, "{note}");
            } else {
                tracing::info!(%service, "{note}");
            }
            self.record_event(now, event);
        }
    }

    fn record_event(&mut self, now: i64, event: NewEvent) {
        let since = event.since.unwrap_or(now);
        self.event_recorder
            .add(event.key, since, event.note, event.uid);
    }

    /// Writes the Events that are due until one fails, and starts none after one tick: the API server may answer
    /// everything but requests for Events.
    async fn write_events(&mut self) {
        let began = Instant::now();
        for event in self
            .event_recorder
            .pending(Timestamp::now().as_millisecond())
        {
            if !self.leads() || began.elapsed() >= TICK {
                return;
            }
            let written = write_event(&self.connection, &event, TICK).await;
            self.metrics.count_write("Event", written.is_ok());
            let result = match &written {
                Ok(()) => WriteResult::Written,
                Err(error) if error.fault.is_passing() => WriteResult::Failed,
                Err(_) => WriteResult::Refused,
            };
            let now = Timestamp::now().as_millisecond();
            self.event_recorder.record_result(now, &event, result);
            match written {
                Ok(()) => self.event_log.succeeded(),
                Err(error) => self.event_log.failed(&error),
            }
            if result == WriteResult::Failed {
                return;
            }
        }
    }

    /// Logs each new Node that is left out of the map or whose report cannot be read completely.
    fn log_nodes(&mut self) {
        for (node, why) in unlogged(&mut self.left_out, self.state.left_out()) {
            tracing::warn!(node, "the Node is left out of the TopologyMap: {why}");
        }
        for (node, why) in unlogged(&mut self.unread, self.state.unread_reports()) {
            tracing::warn!(
                node,
                "the TopologyAgent of the Node cannot be read completely: {why}"
            );
        }
    }

    /// Logs each Pod that reports an address of another Pod for long.
    fn log_conflicts(&mut self) {
        if !self.conflicts.is_due(self.epoch.elapsed()) {
            return;
        }
        let present = self.state.address_conflicts();
        self.metrics.set_address_conflicts(present.len());
        for line in self.conflicts.observe(present) {
            tracing::warn!("{line}");
        }
    }

    /// Plans, and writes what the budget allows.
    async fn write(&mut self) {
        let planned = self.state.plan(Timestamp::now().as_millisecond());
        self.dirty = !planned.is_empty();
        self.log_nodes();
        for write in self.budget.allow(self.epoch.elapsed(), planned) {
            if !self.leads() {
                return;
            }
            self.send(&write).await;
        }
    }

    /// Writes where Pods are, for at most one tick. These writes have limits of their own: of the plan, and for each
    /// object.
    async fn write_pods(&mut self) {
        let (began, now) = (Instant::now(), self.epoch.elapsed());
        self.budget.forget_old(now);
        let budget = &self.budget;
        let must_wait = |collection, name: &ObjectName| budget.must_wait(now, collection, name);
        let mut writes = self.state.plan_pods(must_wait).into_iter();
        let mut sent = JoinSet::new();
        loop {
            while sent.len() < POD_WRITES_AT_ONCE
                && self.leads()
                && began.elapsed() < TICK
                && let Some(planned) = writes.next()
            {
                let connection = self.connection.clone();
                sent.spawn(async move {
                    let written = write::write(&connection, &planned).await;
                    (planned, written)
                });
            }
            let Some(done) = sent.join_next().await else {
                return;
            };
            match done {
                Ok((write, written)) => self.record(&write, written),
                Err(error) => {
                    tracing::error!(%error, "a write broke off and is tried again");
                }
            }
        }
    }

    async fn send(&mut self, write: &Write) {
        let written = write::write(&self.connection, write).await;
        self.record(write, written);
    }

    fn record(&mut self, write: &Write, done: Result<Value, ApiError>) {
        self.metrics
            .count_write(write.collection.kind(), done.is_ok());
        self.budget
            .record_write(self.epoch.elapsed(), write, done.is_ok());
        match done {
            // The response comes before the watch event.
            Ok(object) => {
                if let Some(event) = self.state.record_write(write, object) {
                    self.record_event(Timestamp::now().as_millisecond(), event);
                }
                self.write_log.succeeded();
            }
            Err(error) if is_outdated(write, error.fault) => {}
            Err(error) => self.write_log.failed(&error),
        }
    }
}
