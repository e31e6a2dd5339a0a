//! The first pass: what the kernel holds is adopted, and only what differs is written.

use std::sync::Arc;
use std::time::Duration;

use cluster::index::Index;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use topology_core::memory::Memory;

use super::counts::Counts;
use super::pass::{Asked, Done};
use super::warnings::Topic;
use super::{Item, Reconciler, milliseconds, observe_all};
use crate::guard::GuardError;
use crate::host::Host;
use crate::kernel::{Kernel, KernelError};
use crate::routes::RouteError;
use crate::state::StartTimes;

impl<K: Kernel, H: Host> Reconciler<K, H> {
    /// Reads the machine and brings it to what the cluster asks for. If the kernel cannot be read,
    /// nothing is written and it is tried again.
    pub(super) async fn start(&mut self) {
        let began = Instant::now();
        let prepared = self.prepare().await;
        self.read_place().await;
        let resolving = self.resolve_aside();
        let (read, dump) = self.read_everything().await;
        let asked = self.resolved(resolving).await;
        if let Err(error) = read {
            let now = self.now();
            self.warnings.set(Topic::Kernel, vec![error.to_string()]);
            self.agenda.failed(&Item::Start, error.to_string(), now);
            return;
        }
        self.agenda.succeeded(&Item::Start);
        self.warnings.set(Topic::Kernel, Vec::new());
        let done = self.full_pass(Some(asked)).await;
        self.forget_claims_without_server();
        self.started = self.index.completeness();
        self.next_check = Instant::now() + self.config.check_period;
        self.times = StartTimes {
            dump,
            compute: done.computing,
            apply: done.applied.took,
            steps: u64::try_from(done.applied.steps()).unwrap_or(u64::MAX),
            total: began.elapsed(),
        };
        self.log_start(&done, prepared);
    }

    /// Resolves everything on another thread, while the kernel is read on this one; the index is lent for that time.
    fn resolve_aside(&mut self) -> JoinHandle<(Index, Vec<Asked>, Memory)> {
        self.me.now = Some(self.clock.now());
        let index = std::mem::replace(&mut self.index, Index::new(Vec::new()));
        let (me, place) = (self.me.clone(), self.place.clone());
        tokio::task::spawn_blocking(move || {
            let (asked, memory) = Asked::all(index.snapshot(), &me, &place);
            (index, asked, memory)
        })
    }

    async fn resolved(&mut self, resolving: JoinHandle<(Index, Vec<Asked>, Memory)>) -> Vec<Asked> {
        match resolving.await {
            Ok((index, asked, memory)) => {
                self.index = index;
                self.me.memory = Arc::new(memory);
                asked
            }
            Err(panicked) => std::panic::resume_unwind(panicked.into_panic()),
        }
    }

    fn log_start(&self, done: &Done, prepared: usize) {
        tracing::info!(
            writes = done.writes() + prepared,
            virtual_servers = self.counts.v4.virtual_servers + self.counts.v6.virtual_servers,
            foreign = self.counts.foreign,
            failing = self.agenda.failing().0,
            milliseconds = milliseconds(self.times.total),
            "first pass done"
        );
    }

    /// Sysctls and the link. Returns the number of changes.
    pub(super) async fn prepare(&mut self) -> usize {
        let (changed, warnings) = self.host.prepare().await;
        for change in &changed {
            tracing::info!("{change}");
        }
        self.warnings.set(Topic::Settings, warnings);
        changed.len()
    }

    /// The whole table into the mirror, while `ip` and `nft` tell what they have. How long the table took.
    async fn read_everything(&mut self) -> (Result<(), KernelError>, Duration) {
        let now = self.now();
        let Self {
            kernel,
            host,
            mirror,
            ..
        } = self;
        let table = async {
            let began = Instant::now();
            let read = observe_all(kernel, mirror, now).await;
            (read, began.elapsed())
        };
        let (table, shape) = tokio::join!(table, read_shape(host));
        self.note_shape(shape);
        let keys: Vec<_> = self.mirror.keys().copied().collect();
        self.counts = Counts::of(&self.mirror, &keys);
        table
    }

    /// Reads which routes and tables there are, so that only the difference is written.
    pub(super) async fn read_shape(&mut self) {
        let shape = read_shape(&mut self.host).await;
        self.note_shape(shape);
    }

    /// Reads which routes of ours there are.
    pub(super) async fn read_routes(&mut self) {
        let routes = self.host.read_routes().await;
        self.note_routes(routes);
    }

    fn note_routes(&mut self, routes: Result<(), RouteError>) {
        if let Err(error) = routes {
            self.warnings.set(Topic::Routes, vec![error.to_string()]);
        }
    }

    fn note_shape(&mut self, (routes, tables): ShapeRead) {
        self.note_routes(routes);
        if let Err(error) = tables {
            self.warnings.set(Topic::Guard, vec![error.to_string()]);
        }
    }

    /// Claims whose virtual server does not exist end now: another may create one of that name.
    fn forget_claims_without_server(&mut self) {
        let mut stale = std::mem::take(&mut self.claims);
        stale.retain(|key| self.is_void(key));
        self.disown(&stale);
    }
}

/// What became of reading the routes, and the tables.
type ShapeRead = (Result<(), RouteError>, Result<(), GuardError>);

async fn read_shape(host: &mut impl Host) -> ShapeRead {
    (host.read_routes().await, host.read_guard().await)
}
