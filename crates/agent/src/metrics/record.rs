//! Records events of the loop and the servers: one method for each kind of event.

use std::time::Duration;

use topology_core::model::Family;

use super::Metrics;
use super::labels::{CauseLabel, CodeLabel, FamilyLabel, ResultLabel, WriteLabels};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Probe {
    /// `/healthz`.
    Healthz,
    /// `/livez`.
    Livez,
    /// `/readyz`, which kube-proxy does not have.
    Readyz,
}

/// How a drain ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DrainEnd {
    /// The last connection ended.
    Idle,
    /// The deadline passed with connections left.
    Deadline,
    /// The real server is chosen again.
    Returned,
}

impl Metrics {
    /// Records the end of a pass over keys of this family.
    pub fn pass_ended(&self, family: Family, took: Duration) {
        let label = family_label(family);
        self.counts()
            .pass_seconds
            .get_or_create(&label)
            .observe(took.as_secs_f64());
    }

    /// Records that a plan was executed, with any results.
    pub fn plan_applied(&self, took: Duration) {
        self.counts().apply_seconds.observe(took.as_secs_f64());
    }

    /// Records steps; `step` and `result` are values of closed lists, for example `add_real` and `done`.
    pub fn kernel_writes(&self, step: &'static str, result: &'static str, count: u64) {
        self.counts()
            .writes
            .get_or_create(&WriteLabels { step, result })
            .inc_by(count);
    }

    /// Records that a change is in the kernel, this long after it arrived.
    pub fn change_programmed(&self, took: Duration) {
        self.counts().latency_seconds.observe(took.as_secs_f64());
    }

    /// Records that a change of an EndpointSlice is in the kernel, this long after its cause (KP-MX-22).
    pub fn endpoints_programmed(&self, family: Family, took: Duration) {
        self.counts()
            .programming_seconds
            .get_or_create(&family_label(family))
            .observe(took.as_secs_f64());
    }

    /// Records changed Services and EndpointSlices.
    pub fn input_changed(&self, services: u64, slices: u64) {
        self.counts().service_changes.inc_by(services);
        self.counts().endpoint_changes.inc_by(slices);
    }

    /// Records the end of a drain.
    pub fn drain_ended(&self, end: DrainEnd) {
        let result = match end {
            DrainEnd::Idle => "idle",
            DrainEnd::Deadline => "deadline",
            DrainEnd::Returned => "returned",
        };
        self.counts()
            .drains
            .get_or_create(&ResultLabel { result })
            .inc();
    }

    /// Records repaired kernel entries; `cause` is a value of a closed list, for example `missing`.
    pub fn repaired(&self, cause: &'static str, entries: u64) {
        self.counts()
            .repairs
            .get_or_create(&CauseLabel { cause })
            .inc_by(entries);
    }

    /// Records deleted UDP connection tracking entries.
    pub fn conntrack_cleaned(&self, family: Family, deleted: u64, took: Duration) {
        let label = family_label(family);
        self.counts()
            .conntrack_seconds
            .get_or_create(&label)
            .observe(took.as_secs_f64());
        self.counts()
            .conntrack_deleted
            .get_or_create(&label)
            .inc_by(deleted);
    }

    /// Records the HTTP status of a health endpoint.
    pub fn probed(&self, probe: Probe, code: u16) {
        let family = match probe {
            Probe::Healthz => &self.counts().healthz,
            Probe::Livez => &self.counts().livez,
            Probe::Readyz => return,
        };
        family.get_or_create(&CodeLabel { code }).inc();
    }
}

/// kube-proxy's name of a family.
pub(crate) fn family_label(family: Family) -> FamilyLabel {
    FamilyLabel {
        ip_family: family.as_str(),
    }
}
