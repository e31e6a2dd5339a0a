//! The metrics of the controller.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use kube_io::Connection;
use prometheus_client::encoding::{EncodeLabelSet, text};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use telemetry::ClientRequests;

use crate::state::HintCounts;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ObjectWriteLabels {
    kind: &'static str,
    outcome: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct HintLabels {
    outcome: &'static str,
}

#[derive(Debug, Clone)]
pub struct Metrics {
    registry: Arc<Registry>,
    leader: Gauge<u64, AtomicU64>,
    nodes: Gauge<u64, AtomicU64>,
    writes: Family<ObjectWriteLabels, Counter>,
    watch_failures: Counter,
    hints: Family<HintLabels, Gauge<u64, AtomicU64>>,
    address_conflicts: Gauge<u64, AtomicU64>,
    requests: ClientRequests,
}

impl Default for Metrics {
    fn default() -> Self {
        let mut all = Registry::default();
        let requests = ClientRequests::default();
        requests.register(&mut all);
        all.register_collector(Box::new(telemetry::Process));
        let registry = all.sub_registry_with_prefix("ipvs_topo_controller");
        let (leader, nodes) = (Gauge::default(), Gauge::default());
        let (writes, watch_failures) = (Family::default(), Counter::default());
        let (hints, address_conflicts) = (Family::default(), Gauge::default());
        registry.register("leader", "1 if this replica is the leader", leader.clone());
        registry.register("nodes", "Nodes that the controller knows", nodes.clone());
        let help = "Objects written, by kind and outcome: ok or failed";
        registry.register("writes", help, writes.clone());
        let help = "Lists and watches that failed and were retried";
        registry.register("watch_failures", help, watch_failures.clone());
        let help = "Services, one for each address family, by the outcome of their hints: written, refused or left (to another writer)";
        registry.register("hints", help, hints.clone());
        let help = "Pods that report an address of another Pod, counted every 30 seconds with --pod-locator-namespaces";
        registry.register("pod_address_conflicts", help, address_conflicts.clone());
        Self {
            registry: Arc::new(all),
            leader,
            nodes,
            writes,
            watch_failures,
            hints,
            address_conflicts,
            requests,
        }
    }
}

impl Metrics {
    /// Metrics in which each series has a value, for the reference page.
    pub fn sample() -> Self {
        let metrics = Self::default();
        metrics.set_hints(HintCounts::default());
        metrics.count_write("Event", true);
        let request = ("200".to_owned(), "GET", 1);
        metrics.requests.fill("https://10.96.0.1", [request]);
        metrics
    }

    pub fn set_leader(&self, leads: bool, nodes: usize) {
        self.leader.set(u64::from(leads));
        self.nodes.set(u64::try_from(nodes).unwrap_or(u64::MAX));
    }

    pub fn set_hints(&self, count: HintCounts) {
        let HintCounts {
            written,
            refused,
            left,
        } = count;
        for (outcome, count) in [("written", written), ("refused", refused), ("left", left)] {
            let gauge = self.hints.get_or_create(&HintLabels { outcome });
            gauge.set(u64::try_from(count).unwrap_or(u64::MAX));
        }
    }

    pub fn set_address_conflicts(&self, count: usize) {
        self.address_conflicts
            .set(u64::try_from(count).unwrap_or(u64::MAX));
    }

    pub fn count_write(&self, kind: &'static str, ok: bool) {
        let outcome = if ok { "ok" } else { "failed" };
        self.writes
            .get_or_create(&ObjectWriteLabels { kind, outcome })
            .inc();
    }

    pub fn count_watch_failure(&self) {
        self.watch_failures.inc();
    }

    pub fn set_requests(&self, api: &Connection) {
        let counts = api.count().requests.into_iter().map(|(key, count)| {
            let code = ClientRequests::code_label(key.code);
            (code, key.verb.method(), count)
        });
        self.requests.fill(api.server(), counts);
    }

    /// Encodes all metrics as `OpenMetrics` text.
    pub fn text(&self) -> String {
        let mut out = String::new();
        // Writing to a String cannot fail.
        let _written = text::encode(&mut out, &self.registry);
        out
    }
}
