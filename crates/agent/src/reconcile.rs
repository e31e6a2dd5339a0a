//! The loop: what the cluster says becomes what the kernel holds, and stays so.
//!
//! ```text
//! trigger ──> desired (resolve what is dirty) ──> plan (diff against the mirror) ──> apply ──> commit
//! ```
//!
//! Everything that can wake it is in [`Trigger`]; nothing else changes its state. One pass handles
//! any set of Services and keys: a change, a retry, the repair of drift and the start differ only in
//! which keys they name. Nothing is ever flushed, and nothing is written before the first full read.

// A source, reason, note or fact that is added must be thought of everywhere, and not fall under `_`.
#![warn(clippy::wildcard_enum_match_arm)]

mod apply;
mod check;
mod clock;
mod conntrack;
mod counts;
mod deadlines;
mod desired;
mod host_state;
mod initial_read;
mod other_proxy;
mod pass;
mod programmable;
mod publish;
mod queries;
mod retry;
mod schedulers;
mod start;
mod trash;
mod warnings;

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, SystemTime};

use cluster::event::{Batch, Completeness, Event};
use cluster::index::Index;
use cluster::object::{Kind, Object};
use cluster::source::Watch;
use dataplane::crash_point::CrashPoint;
use dataplane::host::Host;
use dataplane::ipvs::Kernel;
use dataplane::routes::address_monitor::AddressMonitor;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;
use topology_core::mirror::Mirror;
use topology_core::plan::Deadline;
use topology_core::resolve::Viewpoint;
use topology_core::virtual_server::VirtualServerKey;

use crate::agent_status::Aggregate;
use crate::metrics::Metrics;
use crate::run::AgentConfig;
use crate::state::{Pulse, Question, StartTimes};

use self::check::PeriodicCheck;
use self::clock::Clock;
use self::conntrack::Forgetting;
use self::counts::KernelTotals;
use self::desired::DesiredServices;
use self::host_state::HostAddresses;
use self::initial_read::InitialRead;
use self::other_proxy::OtherProxy;
use self::retry::Agenda;
use self::schedulers::Schedulers;
use self::trash::Trash;
use self::warnings::Warnings;

/// Virtual servers read from the kernel before the loop looks at its other triggers.
const SLICE: usize = 128;

/// Everything that can wake the loop.
enum Trigger {
    /// The process was asked to exit; the data plane stays.
    Stop,
    /// Someone asks something.
    Question(Question),
    /// The cluster changed.
    Input(Batch),
    /// Addresses of this machine came or went.
    Moved,
    /// What follows the cluster has ended: its thread panicked.
    SourceEnded,
    /// A failed key, a draining real server or a refused part of the machine is due.
    Due,
    /// The periodic comparison begins.
    Check,
    /// The comparison that has begun goes on, a slice at a time.
    CheckOn,
    /// The cluster's first list is still coming: meanwhile the kernel's table is read, a slice at a time.
    ReadOn,
}

/// Why the loop ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ended {
    /// It was asked to.
    Stopped,
    /// Nothing follows the cluster any more, so it would serve what was true once.
    SourceLost,
    /// Nothing deletes connection tracking entries any more.
    ConntrackLost,
}

/// Something on the agenda.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Item {
    /// The first pass could not begin.
    Start,
    /// Our routes.
    Routes,
    /// Our tables.
    Tables,
    /// What our tables hold is being read.
    TablesRead,
    /// Connection tracking entries are being deleted.
    Flows,
    /// A virtual server.
    Server(VirtualServerKey),
    /// The decision about a Service, named by one of its virtual servers, that time alone changes.
    Decision(VirtualServerKey),
}

/// Changes of the input that no pass has taken up.
#[derive(Debug, Clone, Copy, Default)]
struct Pending {
    /// When the oldest of them arrived.
    since: Option<Instant>,
    services: u64,
    slices: u64,
}

/// The loop's state.
pub(crate) struct Reconciler<K, H> {
    config: AgentConfig,
    me: Viewpoint,
    index: Index,
    mirror: Mirror,
    /// Deadlines that have begun or ended since they were last written down.
    unsaved: Vec<Deadline>,
    /// What the ownership record called ours, until the first pass is done.
    claims: Vec<VirtualServerKey>,
    desired: DesiredServices,
    /// What there is to report of the decisions.
    aggregate: Aggregate,
    agenda: Agenda<Item>,
    addresses: HostAddresses,
    warnings: Warnings,
    schedulers: Schedulers,
    counts: KernelTotals,
    trash: Trash,
    forgetting: Forgetting,
    initial_read: InitialRead,
    check: Option<PeriodicCheck>,
    next_check: Instant,
    other_proxy: OtherProxy,
    /// `None` until the first pass is done; then whether its input was complete.
    started: Option<Completeness>,
    pending: Pending,
    last_queued: Option<SystemTime>,
    last_pass: Option<SystemTime>,
    /// When the first full read of the input was done.
    input_since: Option<Instant>,
    times: StartTimes,
    kernel: K,
    host: H,
    metrics: Metrics,
    pulse: watch::Sender<Pulse>,
    crash_point: Arc<CrashPoint>,
    epoch: Instant,
    clock: Clock,
}

/// What a loop is made of, beside its configuration.
pub(crate) struct Parts<K, H> {
    pub(crate) kernel: K,
    pub(crate) host: H,
    /// The keys that the ownership record calls ours.
    pub(crate) ours: Vec<VirtualServerKey>,
    /// When draining real servers are deleted, as far as an earlier process knew.
    pub(crate) deadlines: Vec<Deadline>,
    /// From when the loop counts its milliseconds: the boot, as deadlines outlive the process.
    pub(crate) epoch: Instant,
    pub(crate) metrics: Metrics,
    pub(crate) pulse: watch::Sender<Pulse>,
    pub(crate) crash_point: Arc<CrashPoint>,
}

impl<K: Kernel, H: Host> Reconciler<K, H> {
    pub(crate) fn new(config: AgentConfig, parts: Parts<K, H>) -> Self {
        let Parts {
            kernel,
            host,
            ours,
            deadlines,
            epoch,
            metrics,
            pulse,
            crash_point,
        } = parts;
        let drain_timeout = milliseconds(config.drain_timeout);
        let mut mirror = Mirror::new(ours.iter().copied(), drain_timeout);
        mirror.recall(&deadlines, milliseconds(epoch.elapsed()));
        let me = Viewpoint {
            scheduler: config.scheduler,
            ..Viewpoint::new(Arc::clone(&config.node))
        };
        Self {
            me,
            index: Index::new(config.service_cidrs.clone()),
            mirror,
            unsaved: Vec::new(),
            claims: ours,
            desired: DesiredServices::default(),
            aggregate: Aggregate::default(),
            agenda: Agenda::new(),
            addresses: HostAddresses::default(),
            warnings: Warnings::default(),
            schedulers: Schedulers::default(),
            counts: KernelTotals::default(),
            trash: Trash::new(),
            forgetting: Forgetting::default(),
            initial_read: InitialRead::default(),
            check: None,
            next_check: Instant::now(),
            other_proxy: OtherProxy::default(),
            started: None,
            pending: Pending::default(),
            last_queued: None,
            last_pass: None,
            input_since: None,
            times: StartTimes::default(),
            config,
            kernel,
            host,
            metrics,
            pulse,
            crash_point,
            epoch,
            clock: Clock::set(),
        }
    }

    /// Runs until `stop` is done.
    pub(crate) async fn run(
        &mut self,
        mut source: Watch,
        mut address_monitor: AddressMonitor,
        mut questions: mpsc::Receiver<Question>,
        stop: impl Future<Output = ()>,
    ) -> Ended {
        let mut stop = pin!(stop);
        loop {
            let trigger = tokio::select! {
                biased;
                () = &mut stop => Trigger::Stop,
                Some(question) = questions.recv() => Trigger::Question(question),
                batch = source.next() => batch.map_or(Trigger::SourceEnded, Trigger::Input),
                () = address_monitor.next(), if self.started.is_some() => Trigger::Moved,
                () = self.until_due() => Trigger::Due,
                () = std::future::ready(()), if self.check.is_some() => Trigger::CheckOn,
                () = std::future::ready(()), if self.initial_read.is_partly_read() => Trigger::ReadOn,
                () = tokio::time::sleep_until(self.next_check), if self.started.is_some() => Trigger::Check,
            };
            match trigger {
                Trigger::Stop => {
                    self.finish_forgetting().await;
                    tracing::info!("stopping; the data plane goes on serving");
                    return Ended::Stopped;
                }
                Trigger::Question(question) => self.answer(question).await,
                Trigger::Input(batch) => self.take_input(batch, &mut source).await,
                Trigger::Moved => self.addresses_moved().await,
                Trigger::SourceEnded => return Ended::SourceLost,
                Trigger::Due => self.handle_due().await,
                Trigger::Check => self.begin_check().await,
                Trigger::CheckOn => self.check_on().await,
                Trigger::ReadOn => self.read_on().await,
            }
            if self.forgetting.is_lost {
                return Ended::ConntrackLost;
            }
            self.see_other_proxy();
            self.publish();
        }
    }

    /// Takes a batch and whatever else has come meanwhile, so that a burst is one pass; the first
    /// change of a burst waits for nothing.
    async fn take_input(&mut self, batch: Batch, source: &mut Watch) {
        let arrived = Instant::now();
        self.pending.since.get_or_insert(arrived);
        self.last_queued = Some(SystemTime::now());
        self.absorb(batch);
        while let Some(batch) = next_now(source).await {
            self.absorb(batch);
        }
        if self.index.completeness().is_some() {
            self.input_since.get_or_insert_with(Instant::now);
        }
        // A query during a long pass must see that changes are pending.
        self.publish();
        match (self.started, self.index.completeness()) {
            // The first full read is still under way: nothing may be programmed.
            (_, None) => {}
            (None, Some(_)) => self.start().await,
            (Some(Completeness::Partial), Some(Completeness::Whole)) => {
                self.full_pass().await;
                self.started = Some(Completeness::Whole);
            }
            (Some(_), Some(_)) => self.pass_dirty().await,
        }
    }

    fn absorb(&mut self, batch: Batch) {
        let changes = |kind| {
            batch
                .events
                .iter()
                .filter(move |event| changed(event) == Some(kind))
        };
        let count = |kind| changes(kind).count() as u64;
        let (services, slices) = (count(Kind::Service), count(Kind::EndpointSlice));
        self.metrics.input_changed(services, slices);
        self.pending.services += services;
        self.pending.slices += slices;
        for warning in self.index.apply(batch) {
            tracing::warn!("{warning}");
        }
    }

    async fn until_due(&self) {
        match self.agenda.next() {
            Some(due) => tokio::time::sleep_until(self.epoch + Duration::from_millis(due)).await,
            None => std::future::pending().await,
        }
    }

    /// Milliseconds of the loop's clock.
    fn now(&self) -> u64 {
        milliseconds(self.epoch.elapsed())
    }
}

/// What kind of object an event changes; Nodes and ranges are not counted.
fn changed(event: &Event) -> Option<Kind> {
    match event {
        Event::Apply(Object::Service(_)) => Some(Kind::Service),
        Event::Apply(Object::EndpointSlice(_)) => Some(Kind::EndpointSlice),
        Event::Delete(key) => Some(key.kind),
        Event::Begin
        | Event::Apply(_)
        | Event::Ignore(..)
        | Event::Keep(_)
        | Event::Unread(_)
        | Event::Complete(_) => None,
    }
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// The next batch if it is there already.
async fn next_now(source: &mut Watch) -> Option<Batch> {
    let mut next = pin!(source.next());
    poll_fn(|context| match next.as_mut().poll(context) {
        Poll::Ready(batch) => Poll::Ready(batch),
        Poll::Pending => Poll::Ready(None),
    })
    .await
}

#[cfg(test)]
mod tests;
