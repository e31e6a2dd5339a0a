//! Schedulers that this kernel does not have.
//!
//! A virtual server whose scheduler the kernel refuses gets `wrr` in the same pass, with weights made for that. At every
//! check one virtual server asks for the scheduler again; the kernel loads a module that has come meanwhile by itself.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use topology_core::mirror::Outcome;
use topology_core::plan::Step;
use topology_core::scheduler::Scheduler;
use topology_core::virtual_server::VirtualServerKey;

use super::Reconciler;
use super::pass::{Wanted, Work, names};
use crate::host::Host;
use crate::kernel::{Kernel, StepError};
use crate::trouble::Topic;

/// What is missing.
#[derive(Debug, Default)]
pub(super) struct Schedulers {
    /// Each with a virtual server that asks for it.
    missing: BTreeMap<Scheduler, VirtualServerKey>,
    /// Virtual servers that were refused since somebody asked.
    refused: BTreeSet<VirtualServerKey>,
}

impl Schedulers {
    /// Takes note of a step that the kernel refused for want of its scheduler.
    pub(super) fn note(&mut self, step: &Step, error: &StepError) {
        let (Step::AddServer { key, scheduler, .. } | Step::EditServer { key, scheduler, .. }) =
            step
        else {
            return;
        };
        // Without `wrr` there is nothing to fall back to.
        if error.no_scheduler && *scheduler != Scheduler::default() {
            self.missing.insert(*scheduler, *key);
            self.refused.insert(*key);
        }
    }

    /// Whether `wrr` is about to take the place of the scheduler of `key`.
    pub(super) fn refuses(&self, key: &VirtualServerKey) -> bool {
        self.refused.contains(key)
    }
}

impl<K: Kernel, H: Host> Reconciler<K, H> {
    /// What is wanted instead where the kernel refused the scheduler; empty if it refused none.
    pub(super) fn fall_back(&mut self) -> Wanted {
        let refused = std::mem::take(&mut self.schedulers.refused);
        let mut wanted = Wanted::new();
        if refused.is_empty() {
            return wanted;
        }
        self.tell_missing();
        let owners = refused.iter().filter_map(|key| self.books.owner(key));
        let services: BTreeSet<_> = owners.cloned().collect();
        self.resolve_all(&services, &mut wanted);
        wanted
    }

    /// Asks for what was missing again, and schedules by what has come.
    pub(super) async fn look_for_schedulers(&mut self) {
        let missing = std::mem::take(&mut self.schedulers.missing);
        let before = missing.len();
        for (scheduler, key) in missing {
            if self.is_still_refused(scheduler, &key).await {
                self.schedulers.missing.insert(scheduler, key);
            }
        }
        if self.schedulers.missing.len() == before {
            return;
        }
        self.tell_missing();
        let work = Work {
            services: names(self.index.snapshot()),
            ..Work::default()
        };
        let done = self.pass(work).await;
        self.report(&done, None);
    }

    /// Whether the kernel refuses to schedule `key` by `scheduler`. A virtual server that is gone answers nothing.
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
            self.mirror.commit(&step, Outcome::Unknown);
        }
        refused
    }

    /// Has decisions, the log and `status` know what is missing.
    fn tell_missing(&mut self) {
        let missing: BTreeSet<Scheduler> = self.schedulers.missing.keys().copied().collect();
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
