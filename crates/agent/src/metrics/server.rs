//! Metrics of requests to the API server: client-go's and our own.

use std::sync::atomic::AtomicU64;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use telemetry::ClientRequests;

use super::figures::Server;

/// One field for each metric.
#[derive(Debug, Clone, Default)]
pub(crate) struct ServerGauges {
    client: ClientRequests,
    requests: Family<RequestLabels, Counter>,
    bytes: Family<ResourceLabel, Counter>,
    last_received: Family<InputLabel, Gauge<f64, AtomicU64>>,
    behind: Family<InputLabel, Gauge<u64, AtomicU64>>,
    doubted: Family<InputLabel, Gauge<u64, AtomicU64>>,
    source: Family<SourceLabel, Gauge<u64, AtomicU64>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    verb: &'static str,
    resource: String,
    code: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ResourceLabel {
    resource: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct InputLabel {
    input: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct SourceLabel {
    source: &'static str,
}

impl ServerGauges {
    pub(super) fn register(&self, registry: &mut Registry) {
        self.client.register(registry);
        registry.register(
            "ipvs_topo_api_requests",
            "Requests to the API server, by verb, resource and HTTP status code; <error> if no response came",
            self.requests.clone(),
        );
        registry.register(
            "ipvs_topo_api_received_bytes",
            "Bytes received from the API server, after decryption and before decompression",
            self.bytes.clone(),
        );
        registry.register(
            "ipvs_topo_api_last_heard_timestamp_seconds",
            "When the API server last sent anything about a collection, as Unix time",
            self.last_received.clone(),
        );
        registry.register(
            "ipvs_topo_api_behind",
            "1 while a collection is not read yet, or its changes do not arrive",
            self.behind.clone(),
        );
        registry.register(
            "ipvs_topo_api_doubted_objects",
            "Objects that stay although the last list lacks them, until a second list agrees",
            self.doubted.clone(),
        );
        registry.register(
            "ipvs_topo_node_source",
            "1 for the source of other Nodes: nodes or map",
            self.source.clone(),
        );
    }

    /// The counters are kept elsewhere; only their values are copied.
    pub(super) fn fill(&self, server: Option<&Server>) {
        self.requests.clear();
        self.bytes.clear();
        self.last_received.clear();
        self.behind.clear();
        self.doubted.clear();
        self.source.clear();
        let Some(server) = server else {
            self.client.fill("", []);
            return;
        };
        self.fill_requests(server);
        for (resource, &count) in &server.bytes {
            let resource = resource.clone();
            self.bytes
                .get_or_create(&ResourceLabel { resource })
                .inc_by(count);
        }
        for (&input, &seconds) in &server.last_received {
            self.last_received
                .get_or_create(&InputLabel { input })
                .set(seconds);
        }
        for (&input, &count) in &server.doubted {
            let count = u64::try_from(count).unwrap_or(u64::MAX);
            self.doubted.get_or_create(&InputLabel { input }).set(count);
        }
        let source = server.node_source;
        self.source.get_or_create(&SourceLabel { source }).set(1);
        for (&input, &behind) in &server.behind {
            self.behind
                .get_or_create(&InputLabel { input })
                .set(u64::from(behind));
        }
    }

    fn fill_requests(&self, server: &Server) {
        let requests = server.requests.iter();
        let client = requests.map(|((_, method, _, code), &count)| (code.clone(), *method, count));
        self.client.fill(&server.address, client);
        for ((verb, _, resource, code), &count) in &server.requests {
            let labels = RequestLabels {
                verb,
                resource: resource.clone(),
                code: code.clone(),
            };
            self.requests.get_or_create(&labels).inc_by(count);
        }
    }
}
