//! Schedulers that this kernel does not have.
//!
//! A virtual server whose scheduler the kernel refuses gets `wrr` in the same pass, with weights for `wrr`. At each
//! periodic check one virtual server requests one missing scheduler again. For each such request the kernel runs
//! `modprobe` and waits for it, so a check tries only one scheduler, in turns, and a pass requests a scheduler that is
//! not known to work for one virtual server before the others.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use dataplane::ipvs::StepError;
use topology_core::plan::Step;
use topology_core::scheduler::Scheduler;
use topology_core::virtual_server::VirtualServerKey;

#[derive(Debug, Default)]
pub(super) struct Schedulers {
    /// Virtual servers that request a missing scheduler.
    lacking: BTreeMap<VirtualServerKey, Scheduler>,
    /// The names of schedulers with which the kernel has, or had, a virtual server.
    proven: BTreeSet<Arc<str>>,
    /// The scheduler that the last check tried.
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
        // There is no fallback for `wrr`.
        if error.no_scheduler && *scheduler != Scheduler::default() {
            self.proven.remove(scheduler.name());
            self.refuse(*key, *scheduler);
        }
    }

    /// Records that `wrr` must replace the missing scheduler of `key`.
    pub(super) fn refuse(&mut self, key: VirtualServerKey, scheduler: Scheduler) {
        self.lacking.insert(key, scheduler);
        self.refused.insert(key);
    }

    /// Records that the kernel has a virtual server with the scheduler of this name.
    pub(super) fn prove(&mut self, name: &Arc<str>) {
        if !self.proven.contains(name) {
            self.proven.insert(Arc::clone(name));
        }
    }

    /// Whether the kernel has the scheduler, as far as known. There is no fallback for `wrr`, so nothing tries it.
    pub(super) fn is_proven(&self, scheduler: Scheduler) -> bool {
        scheduler == Scheduler::default() || self.proven.contains(scheduler.name())
    }

    /// Whether `wrr` is about to replace the scheduler of `key`.
    pub(super) fn refuses(&self, key: &VirtualServerKey) -> bool {
        self.refused.contains(key)
    }

    /// Records the missing scheduler that a virtual server requests; `None` if it requests none.
    pub(super) fn set_lacking(&mut self, key: VirtualServerKey, scheduler: Option<Scheduler>) {
        match scheduler {
            Some(scheduler) => drop(self.lacking.insert(key, scheduler)),
            None => drop(self.lacking.remove(&key)),
        }
    }

    /// Takes the virtual servers that were refused since the last call.
    pub(super) fn take_refused(&mut self) -> BTreeSet<VirtualServerKey> {
        std::mem::take(&mut self.refused)
    }

    /// Records that a check tries this scheduler.
    pub(super) fn ask(&mut self, scheduler: Scheduler) {
        self.asked = Some(scheduler);
    }

    /// Virtual servers that request this scheduler.
    pub(super) fn lacking(&self, scheduler: Scheduler) -> impl Iterator<Item = &VirtualServerKey> {
        let lacking = self.lacking.iter();
        let asking = lacking.filter(move |(_, lacks)| **lacks == scheduler);
        asking.map(|(key, _)| key)
    }

    /// The missing and requested schedulers.
    pub(super) fn missing(&self) -> BTreeSet<Scheduler> {
        self.lacking.values().copied().collect()
    }

    /// The missing schedulers in the order in which checks try them: starting after the last one.
    pub(super) fn in_turn(&self) -> Vec<Scheduler> {
        let had_its_turn = |scheduler: &Scheduler| Some(*scheduler) <= self.asked;
        let (earlier, mut turn): (Vec<_>, Vec<_>) =
            self.missing().into_iter().partition(had_its_turn);
        turn.extend(earlier);
        turn
    }

    /// Records that the scheduler exists; returns the virtual servers that requested it.
    pub(super) fn came(&mut self, scheduler: Scheduler) -> Vec<VirtualServerKey> {
        let (came, lacking) = std::mem::take(&mut self.lacking)
            .into_iter()
            .partition(|(_, lacks)| *lacks == scheduler);
        self.lacking = lacking;
        let came: BTreeMap<VirtualServerKey, Scheduler> = came;
        came.into_keys().collect()
    }
}
