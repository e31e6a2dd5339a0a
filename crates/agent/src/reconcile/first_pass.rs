//! The first pass: adopts what the kernel holds, and writes only differences.

use dataplane::host::Host;
use dataplane::ipvs::{Kernel, KernelError};
use tokio::time::Instant;

use super::counts::KernelTotals;
use super::initial_read::Progress;
use super::pass::{Done, SLICE};
use super::reconciler::{Item, Reconciler, milliseconds};
use crate::node_warning::Topic;
use crate::state::StartTimes;

impl<K: Kernel, H: Host> Reconciler<K, H> {
    /// Reads the kernel and applies the desired state. If the kernel cannot be read, nothing is written, and the start
    /// is retried.
    pub(super) async fn start(&mut self) {
        let began = Instant::now();
        if let Err(error) = self.read_kernel().await {
            let now = self.now();
            self.warnings.set(Topic::Kernel, vec![error.to_string()]);
            self.agenda.failed(&Item::Start, error.to_string(), now);
            return;
        }
        // Without this node's addresses a Service could take one of them.
        if let Err(error) = self.try_read_addresses().await {
            let now = self.now();
            self.agenda.failed(&Item::Start, error, now);
            return;
        }
        self.agenda.succeeded(&Item::Start);
        self.warnings.set(Topic::Kernel, Vec::new());
        let prepared = self.prepare().await;
        self.read_routes().await;
        // The full pass resolves all Services.
        self.update_infrastructure();
        let present: Vec<_> = self.mirror.keys().copied().collect();
        self.avoid_foreign_marks(present.into_iter());
        let done = self.full_pass().await;
        self.forget_claims_without_server();
        let times = StartTimes {
            dump: self.initial_read.took(),
            compute: done.computing,
            apply: done.applied.took,
            steps: done.applied.steps(),
            total: began.elapsed(),
        };
        self.startup.end(self.index.completeness(), times);
        self.log_start(&done, prepared);
    }

    fn log_start(&self, done: &Done, prepared: u64) {
        tracing::info!(
            writes = done.writes() + prepared,
            virtual_servers = self.counts.v4.virtual_servers + self.counts.v6.virtual_servers,
            foreign = self.counts.foreign,
            failing = self.agenda.failing(),
            milliseconds = milliseconds(self.startup.times().total),
            "first pass done"
        );
    }

    /// Reads our routes. After an error those of the last read count until the retry.
    pub(super) async fn read_routes(&mut self) {
        match self.host.read_routes().await {
            Ok(()) => drop(self.agenda.succeeded(&Item::RoutesRead)),
            Err(error) => {
                let (text, now) = (error.to_string(), self.now());
                self.warnings.set(Topic::Routes, vec![text.clone()]);
                self.agenda.failed(&Item::RoutesRead, text, now);
            }
        }
    }

    /// Releases claims of virtual servers that do not exist: another program may create one with that key.
    fn forget_claims_without_server(&mut self) {
        let mut stale = self.startup.take_claims();
        stale.retain(|key| self.is_void(key));
        self.disown(&stale);
    }

    /// Reads the rest of the table; from the beginning after a failure.
    pub(super) async fn read_kernel(&mut self) -> Result<(), KernelError> {
        self.initial_read.retry();
        while self.initial_read.is_partly_read() {
            self.read_on().await;
        }
        self.initial_read.result()
    }

    /// Reads the next slice.
    pub(super) async fn read_on(&mut self) {
        let began = Instant::now();
        let progress = self.initial_read.take_progress();
        let read = self.read_slice(progress).await;
        self.initial_read.advance(read, began.elapsed());
    }

    async fn read_slice(&mut self, progress: Progress) -> Result<Progress, KernelError> {
        let Progress::ListedServer(mut left) = progress else {
            return Ok(Progress::ListedServer(
                self.kernel.list().await?.into_iter(),
            ));
        };
        for listed in left.by_ref().take(SLICE) {
            let key = listed.key;
            if let Some(reading) = self.kernel.fill(listed).await? {
                self.observe(key, Some(reading));
            }
        }
        if left.len() > 0 {
            return Ok(Progress::ListedServer(left));
        }
        let keys: Vec<_> = self.mirror.keys().copied().collect();
        self.counts = KernelTotals::of(&self.mirror, &keys);
        self.begin_observe().await;
        self.check.schedule(self.config.check_period);
        Ok(Progress::Read)
    }
}
