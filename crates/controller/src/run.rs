//! The loop: what is followed goes into the [`World`], and what the world plans is written while this replica leads.

mod follow;
mod tell;
mod write;

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context as _, bail};
use cluster::api::{Access, Connection, Fault};
use jiff::Timestamp;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, MissedTickBehavior, interval};

use crate::budget::Budget;
use crate::chronicle::{Chronicle, HINTS_LEFT};
use crate::cli::Args;
use crate::elect::{Running, Seat};
use crate::metrics::Metrics;
use crate::serve::{Ready, serve};
use crate::trouble::Trouble;
use crate::world::{Collection, How, News, World};
use follow::{Heard, follow};
use tell::tell;

/// How often there may be something to write: changes are gathered meanwhile.
const TICK: Duration = Duration::from_secs(1);
/// The name of the Lease.
const LEASE: &str = "ipvs-topo-controller";
/// How the API server's logs call the program.
const USER_AGENT: &str = concat!("ipvs-topo-controller/", env!("CARGO_PKG_VERSION"));

/// Runs until SIGTERM or SIGINT.
pub fn run(args: &Args) -> anyhow::Result<()> {
    exposition::raise_file_limit();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("starting the runtime")?;
    runtime.block_on(run_until_told(args))
}

async fn run_until_told(args: &Args) -> anyhow::Result<()> {
    let access = match &args.kubeconfig {
        Some(path) => Access::kubeconfig(path, USER_AGENT),
        None => Access::environment(USER_AGENT),
    };
    let connection = Connection::open(&access).await?;
    tracing::info!(server = connection.server(), "started");
    let (ready, metrics) = (Ready::default(), Metrics::default());
    let (lead, leads) = watch::channel(None);
    let seat = seat(args);
    let chronicle = Chronicle::new(&seat.me);
    let mut followed = Collection::ALWAYS.to_vec();
    if args.write_hints {
        followed.extend(Collection::FOR_HINTS);
    }
    let mut election = Running::start(access, connection.clone(), seat, lead)?;
    let working = Loop {
        connection: connection.clone(),
        world: World::new(args.label_keys.iter().cloned()),
        budget: Budget::new(Duration::ZERO),
        chronicle,
        epoch: Instant::now(),
        unlisted: followed.iter().copied().collect(),
        followed,
        leads,
        ready: ready.clone(),
        metrics: metrics.clone(),
        trouble: Trouble::default(),
        untold: Trouble::default(),
        left_out: BTreeSet::new(),
        dirty: true,
    };
    let ended = tokio::select! {
        ended = serve(args.bind_address, ready, metrics, connection) => ended,
        ended = working.run() => ended,
        ended = election.ended() => bail!("the election ended by itself: {ended:?}"),
        told = told() => told,
    };
    // The loop is dropped by now, so that nothing is written after the Lease is given up.
    election.stop().await.context("the election ended badly")?;
    ended
}

fn seat(args: &Args) -> Seat {
    let process = std::process::id();
    let started = Timestamp::now().as_nanosecond();
    let name = args.name.as_deref().unwrap_or("controller");
    Seat {
        namespace: args.namespace.clone(),
        name: LEASE.to_owned(),
        me: format!("{name}_{process}_{started}"),
    }
}

/// Whether a slice is no longer as it was seen.
fn is_outdated(fault: Fault) -> bool {
    matches!(fault, Fault::Conflict | Fault::NotFound)
}

/// Returns when the process is told to end.
async fn told() -> anyhow::Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    Ok(())
}

struct Loop {
    connection: Connection,
    world: World,
    budget: Budget,
    chronicle: Chronicle,
    epoch: Instant,
    followed: Vec<Collection>,
    /// Collections whose first list has not ended.
    unlisted: BTreeSet<Collection>,
    leads: watch::Receiver<Option<Instant>>,
    ready: Ready,
    metrics: Metrics,
    /// With writes.
    trouble: Trouble,
    /// With Events.
    untold: Trouble,
    /// Nodes that have no place in the map, as the log has it.
    left_out: BTreeSet<String>,
    /// Whether anything was heard since the last plan that left nothing to write.
    dirty: bool,
}

impl Loop {
    /// Goes on for ever, as long as everything does that follows the API server.
    async fn run(mut self) -> anyhow::Result<()> {
        let (sender, mut heard) = mpsc::channel(64);
        let mut tasks = tokio::task::JoinSet::new();
        for collection in self.followed.clone() {
            tasks.spawn(follow(self.connection.clone(), collection, sender.clone()));
        }
        let mut tick = interval(TICK);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut led = false;
        loop {
            tokio::select! {
                Some(heard) = heard.recv() => self.hear(heard),
                Some(ended) = tasks.join_next() => bail!("following the API server ended: {ended:?}"),
                _ = tick.tick() => {
                    let leads = self.leads();
                    if leads != led {
                        tracing::info!("{}", if leads { "leads" } else { "does not lead any more" });
                        (led, self.dirty) = (leads, true);
                        // What another replica said while it led is not known.
                        self.chronicle.forget();
                        self.world.forget();
                    }
                    self.metrics.stands(leads, self.world.node_count());
                    self.metrics.hinted(self.world.hinted());
                    if leads && self.is_informed() {
                        self.lead().await;
                    }
                }
            }
        }
    }

    /// Whether everything was read that all but hints needs.
    fn is_informed(&self) -> bool {
        let needed = |one: &Collection| Collection::ALWAYS.contains(one);
        !self.unlisted.iter().any(needed)
    }

    fn leads(&self) -> bool {
        self.leads
            .borrow()
            .is_some_and(|until| Instant::now() < until)
    }

    fn hear(&mut self, heard: Heard) {
        match heard {
            Heard::Exists(collection, object) => {
                self.dirty |= self.world.exists(collection, object);
            }
            Heard::Gone(collection, name) => self.dirty |= self.world.gone(collection, &name),
            Heard::Listed(collection, names) => {
                for gone in self.world.names(collection).difference(&names) {
                    self.dirty |= self.world.gone(collection, gone);
                }
                self.world.listed(collection);
                self.dirty |= self.unlisted.remove(&collection);
                if self.is_informed() && !self.ready.is() {
                    tracing::info!("everything was read once");
                    self.ready.set();
                }
            }
            Heard::Trouble => self.metrics.trouble(),
        }
    }

    /// Does what a leader does.
    async fn lead(&mut self) {
        if self.dirty {
            let (seen, complete) = self.world.fallbacks();
            let now = Timestamp::now().as_millisecond();
            let dropped = self.chronicle.observe(now, &seen, complete);
            if dropped > 0 {
                tracing::warn!(dropped, "too much happens to tell each in an Event");
            }
            self.look(now);
        }
        self.tell().await;
        if self.dirty || self.world.waits() {
            self.write().await;
        }
    }

    /// Tells what is new about hints.
    fn look(&mut self, now: i64) {
        for News { key, since, note } in self.world.look() {
            let service = &key.0;
            if key.1 == HINTS_LEFT {
                tracing::warn!(service, "{note}");
            } else {
                tracing::info!(service, "{note}");
            }
            self.chronicle.add(key, since.unwrap_or(now), note);
        }
    }

    /// Writes the Events that may be written now.
    async fn tell(&mut self) {
        for entry in self.chronicle.due(Timestamp::now().as_millisecond()) {
            if !self.leads() {
                return;
            }
            let told = tell(&self.connection, &entry).await;
            self.metrics.wrote("Event", told.is_ok());
            let may_come = matches!(&told, Err(error) if error.fault.is_passing());
            let now = Timestamp::now().as_millisecond();
            self.chronicle.wrote(now, &entry, !may_come);
            match told {
                Ok(()) => self.untold.is_over(),
                Err(error) => self.untold.lasts(&error),
            }
        }
    }

    /// One line for each Node that has lost its place in the map.
    fn tell_left_out(&mut self) {
        let left_out = self.world.left_out();
        for (node, why) in left_out {
            if !self.left_out.contains(node) {
                tracing::warn!(node, "the Node is left out of the TopologyMap: {why}");
            }
        }
        self.left_out = left_out.keys().cloned().collect();
    }

    /// Writes what may be written now.
    async fn write(&mut self) {
        let planned = self.world.plan(Timestamp::now().as_millisecond());
        self.dirty = !planned.is_empty();
        self.tell_left_out();
        for write in self.budget.allow(self.epoch.elapsed(), planned) {
            if !self.leads() {
                return;
            }
            let done = write::write(&self.connection, &write).await;
            self.metrics.wrote(write.collection.kind(), done.is_ok());
            self.budget
                .wrote(self.epoch.elapsed(), &write, done.is_ok());
            match done {
                // What was answered is known before the watch tells it.
                Ok(object) => {
                    self.world.wrote(&write, object);
                    self.trouble.is_over();
                }
                // Who makes the slices was faster; they are read and written again.
                Err(error) if write.how == How::Merge && is_outdated(error.fault) => {}
                Err(error) => self.trouble.lasts(&error),
            }
        }
    }
}
