//! Uses `wrr` instead of a scheduler that the kernel refuses, and tries the scheduler again at periodic checks.

use std::collections::BTreeSet;
use std::sync::Arc;

use dataplane::host::Host;
use dataplane::ipvs::{Kernel, StepError};
use topology_core::mirror::StepOutcome;
use topology_core::plan::Step;
use topology_core::scheduler::Scheduler;
use topology_core::virtual_server::VirtualServerKey;

use super::pass::{DesiredKeys, Done, Work};
use super::programmable::ProgrammableServer;
use super::reconciler::Reconciler;
use crate::node_warning::Topic;

/// The most virtual servers with which a pass tries a scheduler. One is enough, unless it waits for something else.
const MOST_TRIES: usize = 4;

impl<K: Kernel, H: Host> Reconciler<K, H> {
    /// Programs one virtual server with each scheduler that is not known to work. If the kernel refuses one, `wrr`
    /// replaces it in `desired` before the others are planned.
    pub(super) async fn try_schedulers(&mut self, desired: &mut DesiredKeys, done: &mut Done) {
        let targets = desired.values().flatten();
        let requested: BTreeSet<_> = targets.map(|target| target.server.scheduler).collect();
        for scheduler in requested {
            if !self.schedulers.is_proven(scheduler) {
                self.try_scheduler(scheduler, desired, done).await;
            }
        }
        let mut instead = self.fall_back();
        self.read_again(&mut instead).await;
        desired.extend(instead);
    }

    async fn try_scheduler(
        &mut self,
        scheduler: Scheduler,
        desired: &mut DesiredKeys,
        done: &mut Done,
    ) {
        let requests = |target: &ProgrammableServer| target.server.scheduler == scheduler;
        let requesting = desired.iter().filter_map(|(key, target)| {
            let is_requested = target.as_ref().is_some_and(requests);
            is_requested.then_some(*key)
        });
        let keys: Vec<VirtualServerKey> = requesting.collect();
        for key in keys.iter().take(MOST_TRIES) {
            let target = desired.remove(key).flatten();
            self.program(DesiredKeys::from([(*key, target)]), done)
                .await;
            if self.schedulers.is_proven(scheduler) {
                return;
            }
            if self.schedulers.refuses(key) {
                let others = keys.iter().filter(|key| desired.contains_key(key));
                others.for_each(|key| self.schedulers.refuse(*key, scheduler));
                return;
            }
        }
    }

    /// The desired state with `wrr` for refused schedulers; empty if none was refused.
    pub(super) fn fall_back(&mut self) -> DesiredKeys {
        let refused = self.schedulers.take_refused();
        let mut desired = DesiredKeys::new();
        if refused.is_empty() {
            return desired;
        }
        self.update_missing();
        let owners = refused.iter().filter_map(|key| self.desired.owner(key));
        let services: BTreeSet<_> = owners.cloned().collect();
        self.resolve_all(&services, &mut desired);
        desired
    }

    /// Tries one of the missing schedulers again, and uses it if the kernel has it now.
    pub(super) async fn look_for_schedulers(&mut self) {
        if self.schedulers.missing() != *self.me.missing {
            // No Service requests one of them any more.
            self.update_missing();
        }
        let mut turn = self.schedulers.in_turn().into_iter();
        let Some((scheduler, key)) = turn.find_map(|one| Some((one, self.asking(one)?))) else {
            return;
        };
        self.schedulers.ask(scheduler);
        if self.is_still_refused(scheduler, &key).await {
            return;
        }
        let came = self.schedulers.came(scheduler);
        self.update_missing();
        let owners = came.iter().filter_map(|key| self.desired.owner(key));
        let work = Work {
            services: owners.cloned().collect(),
            ..Work::default()
        };
        let done = self.pass(work).await;
        self.report(&done, None);
    }

    /// One of our virtual servers that requests a scheduler and exists.
    fn asking(&self, scheduler: Scheduler) -> Option<VirtualServerKey> {
        let mut asking = self.schedulers.lacking(scheduler).copied();
        asking.find(|key| self.mirror.get(key).is_some() && self.mirror.is_ours(key))
    }

    /// Whether the kernel refuses `scheduler` for `key`; `false` without a request if the key is not in the mirror.
    async fn is_still_refused(&mut self, scheduler: Scheduler, key: &VirtualServerKey) -> bool {
        let ours = self.mirror.get(key).filter(|_| self.mirror.is_ours(key));
        let Some(persistence) = ours.map(|held| held.persistence) else {
            return false;
        };
        let step = Step::EditServer {
            key: *key,
            scheduler,
            persistence,
        };
        let results = self.kernel.apply(std::slice::from_ref(&step)).await;
        let refused =
            |result: &Result<(), StepError>| result.as_ref().is_err_and(|error| error.no_scheduler);
        let refused = results.iter().any(refused);
        if !refused {
            self.mirror.commit(&step, StepOutcome::Unknown);
        }
        refused
    }

    /// Updates decisions, the log and `status` with the missing schedulers.
    fn update_missing(&mut self) {
        let missing = self.schedulers.missing();
        let words = missing.iter().map(|scheduler| {
            format!(
                "this kernel has no scheduler {scheduler}: Services that ask for it are scheduled by {}; load it: \
                 modprobe ip_vs_{scheduler}",
                Scheduler::default()
            )
        });
        self.warnings.set(Topic::Scheduler, words.collect());
        self.me.missing = Arc::new(missing);
    }
}
