//! `/metrics/slis`: the results of health checks, under the names that all components of Kubernetes use.
//!
//! kube-proxy counts the requests of `/healthz` on the metrics port there, which has one check, `ping` (KP-HC-20).

use std::sync::Arc;

use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

type Label = (&'static str, &'static str);

const NAME: Label = ("name", "ping");
const TYPE: Label = ("type", "healthz");
const STATUS: Label = ("status", "success");

/// The metrics of health checks; clones share them.
#[derive(Debug, Clone)]
pub struct HealthCheckMetrics {
    registry: Arc<Registry>,
    results: Family<[Label; 2], Gauge>,
    total: Family<[Label; 3], Counter>,
}

impl HealthCheckMetrics {
    /// Metrics without a result.
    pub fn new() -> Self {
        let results: Family<[Label; 2], Gauge> = Family::default();
        let total: Family<[Label; 3], Counter> = Family::default();
        let mut registry = Registry::default();
        registry.register(
            "kubernetes_healthcheck",
            "1 if the last health check succeeded",
            results.clone(),
        );
        registry.register(
            "kubernetes_healthchecks",
            "Health checks, by result",
            total.clone(),
        );
        registry.register_collector(Box::new(telemetry::ProcessStart));
        Self {
            registry: Arc::new(registry),
            results,
            total,
        }
    }

    /// Records a response of `/healthz`. There is no response of another kind.
    pub fn succeeded(&self) {
        self.results.get_or_create(&[NAME, TYPE]).set(1);
        self.total.get_or_create(&[NAME, TYPE, STATUS]).inc();
    }

    /// Removes all results.
    pub fn reset(&self) {
        self.results.clear();
        self.total.clear();
    }

    /// The exposition in the `OpenMetrics` format.
    ///
    /// # Errors
    /// Only if the text cannot be written to memory.
    pub fn expose(&self) -> Result<String, std::fmt::Error> {
        let mut text = String::new();
        encode(&mut text, &self.registry)?;
        Ok(text)
    }
}

impl Default for HealthCheckMetrics {
    fn default() -> Self {
        Self::new()
    }
}
