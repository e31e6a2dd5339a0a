//! Schedulers that this kernel does not have.
//!
//! A virtual server whose scheduler the kernel refuses gets `wrr` in the same pass, with weights made for that. At the
//! periodic checks one virtual server asks for the scheduler again. The kernel runs `modprobe` for each such request and
//! answers when that has ended, so a check asks for one scheduler only, and for each in turn.

use std::collections::{BTreeMap, BTreeSet};

use dataplane::ipvs::StepError;
use topology_core::plan::Step;
use topology_core::scheduler::Scheduler;
use topology_core::virtual_server::VirtualServerKey;

/// What is missing.
#[derive(Debug, Default)]
pub(super) struct Schedulers {
    /// Virtual servers that ask for a scheduler that is missing.
    lacking: BTreeMap<VirtualServerKey, Scheduler>,
    /// The one that the last check asked for.
    asked: Option<Scheduler>,
    /// Virtual servers that were refused since the last call of `take_refused`.
    refused: BTreeSet<VirtualServerKey>,
}

impl Schedulers {
    /// Records a step that the kernel refused because it does not have the scheduler.
    pub(super) fn record(&mut self, step: &Step, error: &StepError) {
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

    /// Records the missing scheduler that a virtual server asks for; `None` if it asks for none.
    pub(super) fn set_lacking(&mut self, key: VirtualServerKey, scheduler: Option<Scheduler>) {
        match scheduler {
            Some(scheduler) => drop(self.lacking.insert(key, scheduler)),
            None => drop(self.lacking.remove(&key)),
        }
    }

    /// Hands out the virtual servers that were refused since the last call.
    pub(super) fn take_refused(&mut self) -> BTreeSet<VirtualServerKey> {
        std::mem::take(&mut self.refused)
    }

    /// A check asks for this scheduler now.
    pub(super) fn ask(&mut self, scheduler: Scheduler) {
        self.asked = Some(scheduler);
    }

    /// Virtual servers that ask for this scheduler.
    pub(super) fn lacking(&self, scheduler: Scheduler) -> impl Iterator<Item = &VirtualServerKey> {
        let lacking = self.lacking.iter();
        let asking = lacking.filter(move |(_, lacks)| **lacks == scheduler);
        asking.map(|(key, _)| key)
    }

    /// What is missing and asked for.
    pub(super) fn missing(&self) -> BTreeSet<Scheduler> {
        self.lacking.values().copied().collect()
    }

    /// What is missing, in the order in which checks ask for it: after the one that was asked for last come the others.
    pub(super) fn in_turn(&self) -> Vec<Scheduler> {
        let had_its_turn = |scheduler: &Scheduler| Some(*scheduler) <= self.asked;
        let (earlier, mut turn): (Vec<_>, Vec<_>) =
            self.missing().into_iter().partition(had_its_turn);
        turn.extend(earlier);
        turn
    }

    /// It is there: the virtual servers that asked for it.
    pub(super) fn came(&mut self, scheduler: Scheduler) -> Vec<VirtualServerKey> {
        let (came, lacking) = std::mem::take(&mut self.lacking)
            .into_iter()
            .partition(|(_, lacks)| *lacks == scheduler);
        self.lacking = lacking;
        let came: BTreeMap<VirtualServerKey, Scheduler> = came;
        came.into_keys().collect()
    }
}
