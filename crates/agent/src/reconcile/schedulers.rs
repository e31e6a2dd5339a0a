//! Schedulers that this kernel does not have.
//!
//! A virtual server whose scheduler the kernel refuses gets `wrr` in the same pass, with weights made for that. At the
//! periodic checks one virtual server asks for the scheduler again. The kernel runs `modprobe` for each such request and
//! answers when that has ended, so a check asks for one scheduler only, and for each in turn.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use dataplane::host::Host;
use dataplane::ipvs::{Kernel, StepError};
use topology_core::mirror::StepOutcome;
use topology_core::plan::Step;
use topology_core::scheduler::Scheduler;
use topology_core::virtual_server::VirtualServerKey;

use super::Reconciler;
use super::pass::{DesiredKeys, Work};
use crate::node_warning::Topic;

/// What is missing.
#[derive(Debug, Default)]
pub(super) struct Schedulers {
    /// Virtual servers that ask for a scheduler that is missing.
    lacking: BTreeMap<VirtualServerKey, Scheduler>,
    /// The one that the last check asked for.
    asked: Option<Scheduler>,
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
            self.lacking.insert(*key, *scheduler);
            self.refused.insert(*key);
        }
    }

    /// Whether `wrr` is about to take the place of the scheduler of `key`.
    pub(super) fn refuses(&self, key: &VirtualServerKey) -> bool {
        self.refused.contains(key)
    }

    /// Takes note of what a virtual server asks for in vain, if it does.
    pub(super) fn set_lacking(&mut self, key: VirtualServerKey, scheduler: Option<Scheduler>) {
        match scheduler {
            Some(scheduler) => drop(self.lacking.insert(key, scheduler)),
            None => drop(self.lacking.remove(&key)),
        }
    }

    /// What is missing and asked for.
    fn missing(&self) -> BTreeSet<Scheduler> {
        self.lacking.values().copied().collect()
    }

    /// What is missing, in the order in which checks ask for it: after the one that was asked for last come the others.
    fn in_turn(&self) -> Vec<Scheduler> {
        let had_its_turn = |scheduler: &Scheduler| Some(*scheduler) <= self.asked;
        let (earlier, mut turn): (Vec<_>, Vec<_>) =
            self.missing().into_iter().partition(had_its_turn);
        turn.extend(earlier);
        turn
    }

    /// It is there: the virtual servers that asked for it.
    fn came(&mut self, scheduler: Scheduler) -> Vec<VirtualServerKey> {
        let (came, lacking) = std::mem::take(&mut self.lacking)
            .into_iter()
            .partition(|(_, lacks)| *lacks == scheduler);
        self.lacking = lacking;
        let came: BTreeMap<VirtualServerKey, Scheduler> = came;
        came.into_keys().collect()
    }
}

impl<K: Kernel, H: Host> Reconciler<K, H> {
    /// What is wanted instead where the kernel refused the scheduler; empty if it refused none.
    pub(super) fn fall_back(&mut self) -> DesiredKeys {
        let refused = std::mem::take(&mut self.schedulers.refused);
        let mut wanted = DesiredKeys::new();
        if refused.is_empty() {
            return wanted;
        }
        self.tell_missing();
        let owners = refused.iter().filter_map(|key| self.desired.owner(key));
        let services: BTreeSet<_> = owners.cloned().collect();
        self.resolve_all(&services, &mut wanted);
        wanted
    }

    /// Asks for one of those that were missing again, and schedules by it if it has come.
    pub(super) async fn look_for_schedulers(&mut self) {
        if self.schedulers.missing() != *self.me.missing {
            // No Service asks for one of them any more.
            self.tell_missing();
        }
        let mut turn = self.schedulers.in_turn().into_iter();
        let Some((scheduler, key)) = turn.find_map(|one| Some((one, self.asking(one)?))) else {
            return;
        };
        self.schedulers.asked = Some(scheduler);
        if self.is_still_refused(scheduler, &key).await {
            return;
        }
        let came = self.schedulers.came(scheduler);
        self.tell_missing();
        let owners = came.iter().filter_map(|key| self.desired.owner(key));
        let work = Work {
            services: owners.cloned().collect(),
            ..Work::default()
        };
        let done = self.pass(work).await;
        self.report(&done, None);
    }

    /// A virtual server of ours that asks for a scheduler and is there.
    fn asking(&self, scheduler: Scheduler) -> Option<VirtualServerKey> {
        let lacking = self.schedulers.lacking.iter();
        let mut asking = lacking.filter(|(_, lacks)| **lacks == scheduler);
        let asking =
            asking.find(|(key, _)| self.mirror.get(key).is_some() && self.mirror.is_ours(key));
        asking.map(|(key, _)| *key)
    }

    /// Whether the kernel refuses to schedule `key` by `scheduler`; one that is not in the mirror is not asked.
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

    /// Has decisions, the log and `status` know what is missing.
    fn tell_missing(&mut self) {
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
