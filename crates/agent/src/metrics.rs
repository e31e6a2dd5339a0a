//! The agent's metrics: kube-proxy's names where they apply, its own under `ipvs_topo_`.
//!
//! The loop records events (`metrics::record`). Current values (counts of servers, shares, warnings) are read from the
//! published state at each scrape (`metrics::figures`), so they are never stale. `docs/health-and-metrics.md` lists
//! names and meanings; a test compares the list with the registry.

// A new source, reason, note or fact must be handled everywhere, not by a `_` arm.
#![warn(clippy::wildcard_enum_match_arm)]

pub mod collect;
pub mod figures;
mod gauges;
pub mod health_checks;
pub mod http;
mod labels;
pub mod record;
pub mod sample;
mod server;

use std::sync::{Arc, Mutex, PoisonError};

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

use self::figures::Figures;
use self::gauges::Gauges;
use self::labels::{CauseLabel, CodeLabel, FamilyLabel, ResultLabel, WriteLabels};

/// All metrics of one agent; clones share them.
#[derive(Debug, Clone)]
pub struct Metrics {
    registry: Arc<Registry>,
    /// Held during a scrape: gauges are cleared and filled again.
    gauges: Arc<Mutex<Gauges>>,
    counts: Counts,
}

/// Counters of the loop and the servers.
#[derive(Debug, Clone)]
pub(crate) struct Counts {
    pub(crate) pass_seconds: Family<FamilyLabel, Histogram, fn() -> Histogram>,
    pub(crate) programming_seconds: Family<FamilyLabel, Histogram, fn() -> Histogram>,
    pub(crate) endpoint_changes: Counter,
    pub(crate) service_changes: Counter,
    pub(crate) healthz: Family<CodeLabel, Counter>,
    pub(crate) livez: Family<CodeLabel, Counter>,
    pub(crate) conntrack_seconds: Family<FamilyLabel, Histogram, fn() -> Histogram>,
    pub(crate) conntrack_deleted: Family<FamilyLabel, Counter>,
    pub(crate) writes: Family<WriteLabels, Counter>,
    pub(crate) apply_seconds: Histogram,
    pub(crate) latency_seconds: Histogram,
    pub(crate) drains: Family<ResultLabel, Counter>,
    pub(crate) repairs: Family<CauseLabel, Counter>,
}

impl Metrics {
    /// A registry with every metric at zero.
    pub fn new() -> Self {
        let mut registry = Registry::default();
        let counts = Counts::new();
        counts.register(&mut registry);
        let gauges = Gauges::default();
        gauges.register(&mut registry);
        registry.register_collector(Box::new(telemetry::Process));
        Self {
            registry: Arc::new(registry),
            gauges: Arc::new(Mutex::new(gauges)),
            counts,
        }
    }

    /// The whole exposition in the `OpenMetrics` format, with the current values.
    ///
    /// # Errors
    /// Only if the text cannot be written to memory.
    pub fn expose(&self, figures: &Figures) -> Result<String, std::fmt::Error> {
        // A scrape that panicked with the lock left gauges that are replaced now.
        let gauges = self.gauges.lock().unwrap_or_else(PoisonError::into_inner);
        gauges.fill(figures);
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &self.registry)?;
        Ok(text)
    }

    pub(crate) fn counts(&self) -> &Counts {
        &self.counts
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl Counts {
    fn new() -> Self {
        Self {
            pass_seconds: Family::new_with_constructor(pass_histogram),
            programming_seconds: Family::new_with_constructor(programming_histogram),
            endpoint_changes: Counter::default(),
            service_changes: Counter::default(),
            healthz: Family::default(),
            livez: Family::default(),
            conntrack_seconds: Family::new_with_constructor(pass_histogram),
            conntrack_deleted: Family::default(),
            writes: Family::default(),
            apply_seconds: fine_histogram(),
            latency_seconds: fine_histogram(),
            drains: Family::default(),
            repairs: Family::default(),
        }
    }

    fn register(&self, registry: &mut Registry) {
        self.register_kube_proxy(registry);
        self.register_own(registry);
    }

    /// kube-proxy's names; the encoder adds `_total` to a counter's name.
    fn register_kube_proxy(&self, registry: &mut Registry) {
        registry.register(
            "kubeproxy_sync_proxy_rules_duration_seconds",
            "Duration of one pass",
            self.pass_seconds.clone(),
        );
        registry.register(
            "kubeproxy_network_programming_duration_seconds",
            "Time from the change of a Pod or Service that changed an EndpointSlice to the end of the pass that programs it",
            self.programming_seconds.clone(),
        );
        registry.register(
            "kubeproxy_sync_proxy_rules_endpoint_changes",
            "EndpointSlice changes received",
            self.endpoint_changes.clone(),
        );
        registry.register(
            "kubeproxy_sync_proxy_rules_service_changes",
            "Service changes received",
            self.service_changes.clone(),
        );
        registry.register(
            "kubeproxy_proxy_healthz",
            "Responses of /healthz, by HTTP status code",
            self.healthz.clone(),
        );
        registry.register(
            "kubeproxy_proxy_livez",
            "Responses of /livez, by HTTP status code",
            self.livez.clone(),
        );
        registry.register(
            "kubeproxy_conntrack_reconciler_sync_duration_seconds",
            "Duration of one read of the UDP connection tracking table, with the deletions that follow",
            self.conntrack_seconds.clone(),
        );
        registry.register(
            "kubeproxy_conntrack_reconciler_deleted_entries",
            "UDP connection tracking entries deleted",
            self.conntrack_deleted.clone(),
        );
    }

    fn register_own(&self, registry: &mut Registry) {
        registry.register(
            "ipvs_topo_kernel_writes",
            "Writes to the kernel, by step (such as add_server or edit_real) and result",
            self.writes.clone(),
        );
        registry.register(
            "ipvs_topo_apply_duration_seconds",
            "Duration of applying one plan",
            self.apply_seconds.clone(),
        );
        registry.register(
            "ipvs_topo_change_latency_seconds",
            "Time from the arrival of a change to the end of the pass that programs it",
            self.latency_seconds.clone(),
        );
        registry.register(
            "ipvs_topo_drains",
            "Drained real servers that left, by result: idle (no connection left), deadline (some left) or returned (in use again)",
            self.drains.clone(),
        );
        registry.register(
            "ipvs_topo_repairs",
            "Kernel entries repaired after another program changed them, by cause",
            self.repairs.clone(),
        );
    }
}

/// kube-proxy's buckets of a pass (KP-MX-01): 1 ms doubled 14 times.
fn pass_histogram() -> Histogram {
    Histogram::new(exponential_buckets(0.001, 2.0, 15))
}

/// kube-proxy's buckets of the programming time (KP-MX-04): 0.25, 0.5, 1 to 59, 60 to 115 by 5, 120 to 300 by 30.
fn programming_histogram() -> Histogram {
    let seconds = (1..60)
        .chain((60..120).step_by(5))
        .chain((120..=300).step_by(30))
        .map(f64::from);
    Histogram::new([0.25, 0.5].into_iter().chain(seconds))
}

/// 50 us doubled 17 times, to 6.5 s: one change takes about a millisecond, a cold start seconds.
fn fine_histogram() -> Histogram {
    Histogram::new(exponential_buckets(0.000_05, 2.0, 18))
}

#[cfg(test)]
mod tests;
