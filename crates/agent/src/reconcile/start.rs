//! The first pass: what the kernel holds is adopted, and only what differs is written.

use dataplane::host::Host;
use dataplane::ipvs::Kernel;
use tokio::time::Instant;

use super::pass::Done;
use super::{Item, Reconciler, milliseconds};
use crate::node_warning::Topic;
use crate::state::StartTimes;

impl<K: Kernel, H: Host> Reconciler<K, H> {
    /// Reads the machine and brings it to what the cluster asks for. If the kernel cannot be read,
    /// nothing is written and it is tried again.
    pub(super) async fn start(&mut self) {
        let began = Instant::now();
        if let Err(error) = self.read_kernel().await {
            let now = self.now();
            self.warnings.set(Topic::Kernel, vec![error.to_string()]);
            self.agenda.failed(&Item::Start, error.to_string(), now);
            return;
        }
        // Without this machine's addresses nothing would keep a Service from taking one of them.
        if let Err(error) = self.try_read_addresses().await {
            let now = self.now();
            self.agenda.failed(&Item::Start, error, now);
            return;
        }
        self.agenda.succeeded(&Item::Start);
        self.warnings.set(Topic::Kernel, Vec::new());
        let prepared = self.prepare().await;
        self.read_routes().await;
        let done = self.full_pass().await;
        self.forget_claims_without_server();
        self.started = self.index.completeness();
        self.times = StartTimes {
            dump: self.initial_read.took,
            compute: done.computing,
            apply: done.applied.took,
            steps: done.applied.steps(),
            total: began.elapsed(),
        };
        self.log_start(&done, prepared);
    }

    fn log_start(&self, done: &Done, prepared: u64) {
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
    pub(super) async fn prepare(&mut self) -> u64 {
        let (changed, warnings) = self.host.prepare().await;
        for change in &changed {
            tracing::info!("{change}");
        }
        self.warnings.set(Topic::Settings, warnings);
        changed.len() as u64
    }

    /// Reads which routes of ours there are.
    pub(super) async fn read_routes(&mut self) {
        if let Err(error) = self.host.read_routes().await {
            self.warnings.set(Topic::Routes, vec![error.to_string()]);
        }
    }

    /// Claims whose virtual server does not exist end now: another may create one of that name.
    fn forget_claims_without_server(&mut self) {
        let mut stale = std::mem::take(&mut self.claims);
        stale.retain(|key| self.is_void(key));
        self.disown(&stale);
    }
}
