//! Counts requests, responses and what the limits refuse. The names are those of `CoreDNS` with another prefix.
//!
//! A query costs a few additions to atomic integers: no lock, and no memory after the first use of a series. Current values
//! are read at each scrape.

mod atomic_histogram;
mod fixed_series;
mod labels;

use std::fmt;
use std::net::SocketAddr;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use cluster::api::{Phase, SyncStatus};
use dns::DnsTransport;
use hickory_proto::op::ResponseCode;
use hickory_proto::rr::RecordType;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use telemetry::ClientRequests;

use crate::client_limit::LimitReached;
use crate::exchange::{AnswerSource, AnsweredRequest, UpstreamFailure};
use atomic_histogram::AtomicHistogram;
use fixed_series::FixedSeries;
use labels::{
    AnswerSourceLabel, LimitLabel, ProtocolLabel, QuestionLabels, ResponseLabels,
    UpstreamFailureLabels, UpstreamResponseLabels, WatchLabel,
};

/// All metrics of one server.
#[derive(Debug)]
pub struct DnsMetrics {
    registry: Registry,
    requests: FixedSeries<QuestionLabels, Counter>,
    dnssec_requests: Counter,
    request_seconds: FixedSeries<AnswerSourceLabel, AtomicHistogram>,
    request_bytes: FixedSeries<ProtocolLabel, AtomicHistogram>,
    response_bytes: FixedSeries<ProtocolLabel, AtomicHistogram>,
    responses: FixedSeries<ResponseLabels, Counter>,
    unsent: Counter,
    refused_connections: FixedSeries<LimitLabel, Counter>,
    upstream_seconds: FixedSeries<UpstreamResponseLabels, AtomicHistogram>,
    upstream_failures: FixedSeries<UpstreamFailureLabels, Counter>,
    refused_questions: FixedSeries<LimitLabel, Counter>,
    gauges: DnsGauges,
}

/// Values that are read at each scrape.
#[derive(Debug, Default)]
struct DnsGauges {
    connections: Gauge<u64, AtomicU64>,
    waiting: Gauge<u64, AtomicU64>,
    is_read: Gauge<u64, AtomicU64>,
    behind: Family<WatchLabel, Gauge<u64, AtomicU64>>,
    api_requests: ClientRequests,
}

/// The current values.
#[derive(Debug)]
pub(crate) struct DnsFigures<'a> {
    pub(crate) connections: usize,
    pub(crate) waiting_questions: usize,
    pub(crate) is_cluster_read: bool,
    /// `None` for files.
    pub(crate) sync_status: Option<&'a SyncStatus>,
}

impl DnsMetrics {
    /// Every metric at zero, for a server with these upstream servers.
    pub fn new(upstreams: &[SocketAddr]) -> Self {
        let seconds = AtomicHistogram::of_seconds;
        let bytes = AtomicHistogram::of_bytes;
        let mut metrics = Self {
            registry: Registry::default(),
            requests: FixedSeries::new(QuestionLabels::all(), Counter::default),
            dnssec_requests: Counter::default(),
            request_seconds: FixedSeries::new(AnswerSourceLabel::all(), seconds),
            request_bytes: FixedSeries::new(ProtocolLabel::all(), bytes),
            response_bytes: FixedSeries::new(ProtocolLabel::all(), bytes),
            responses: FixedSeries::new(ResponseLabels::all(), Counter::default),
            unsent: Counter::default(),
            refused_connections: FixedSeries::new(LimitLabel::all(), Counter::default),
            upstream_seconds: FixedSeries::new(UpstreamResponseLabels::all(upstreams), seconds),
            upstream_failures: FixedSeries::new(
                UpstreamFailureLabels::all(upstreams),
                Counter::default,
            ),
            refused_questions: FixedSeries::new(LimitLabel::all(), Counter::default),
            gauges: DnsGauges::default(),
        };
        metrics.refused_connections.start_all();
        metrics.refused_questions.start_all();
        let mut registry = Registry::default();
        metrics.register_requests(&mut registry);
        metrics.register_forwarding(&mut registry);
        metrics.gauges.register(&mut registry);
        registry.register_collector(Box::new(telemetry::Process));
        metrics.registry = registry;
        metrics
    }

    /// The metrics of a server with one upstream server, each series with a value, for the reference page.
    pub fn sample() -> Self {
        let metrics = Self::new(&[SocketAddr::from(([192, 0, 2, 53], 53))]);
        metrics.answered(&AnsweredRequest {
            client: [10, 244, 1, 7].into(),
            transport: DnsTransport::Udp,
            record_type: Some(RecordType::A),
            is_dnssec: false,
            request_bytes: 60,
            reply_bytes: 76,
            code: ResponseCode::NoError,
            source: AnswerSource::Cluster,
            took: Duration::from_micros(40),
        });
        metrics.upstream_answered(0, ResponseCode::NoError, Duration::from_millis(2));
        metrics.upstream_failed(0, UpstreamFailure::Timeout);
        let gauges = &metrics.gauges;
        let input = "services";
        gauges.behind.get_or_create(&WatchLabel { input }).set(0);
        let request = (ClientRequests::code_label(Some(200)), "GET", 1);
        gauges.api_requests.fill("https://10.96.0.1", [request]);
        metrics
    }

    fn register_requests(&self, registry: &mut Registry) {
        registry.register(
            "ipvs_topo_dns_requests",
            "Requests, by transport, address family (1 is IPv4, 2 is IPv6) and record type",
            self.requests.family(),
        );
        registry.register(
            "ipvs_topo_dns_do_requests",
            "Requests whose client wants DNSSEC records",
            self.dnssec_requests.clone(),
        );
        registry.register(
            "ipvs_topo_dns_request_duration_seconds",
            "Time from a request to its reply, by source: cluster, upstream (a server was asked) or none (no answer)",
            self.request_seconds.family(),
        );
        registry.register(
            "ipvs_topo_dns_request_size_bytes",
            "Size of requests, by transport",
            self.request_bytes.family(),
        );
        registry.register(
            "ipvs_topo_dns_response_size_bytes",
            "Size of replies, by transport",
            self.response_bytes.family(),
        );
        registry.register(
            "ipvs_topo_dns_responses",
            "Replies, by response code and source",
            self.responses.family(),
        );
        registry.register(
            "ipvs_topo_dns_unsent_responses",
            "Replies that a TCP client did not receive in time",
            self.unsent.clone(),
        );
        registry.register(
            "ipvs_topo_dns_tcp_connections_refused",
            "TCP connections closed at once, by the limit that is reached: client or total",
            self.refused_connections.family(),
        );
    }

    fn register_forwarding(&self, registry: &mut Registry) {
        registry.register(
            "ipvs_topo_dns_proxy_request_duration_seconds",
            "Time until an upstream server answers, by server and response code",
            self.upstream_seconds.family(),
        );
        registry.register(
            "ipvs_topo_dns_proxy_failures",
            "Questions without an answer of an upstream server, by server and reason: unreachable or timeout",
            self.upstream_failures.family(),
        );
        registry.register(
            "ipvs_topo_dns_forward_max_concurrent_rejects",
            "Questions refused because too many wait for upstream servers, by the limit that is reached: client or total",
            self.refused_questions.family(),
        );
    }

    pub(crate) fn answered(&self, request: &AnsweredRequest) {
        let AnsweredRequest {
            client,
            transport,
            record_type,
            is_dnssec,
            request_bytes,
            reply_bytes,
            code,
            source,
            took,
        } = *request;
        let question = QuestionLabels::position(transport, client, record_type);
        self.requests.increment(question);
        if is_dnssec {
            self.dnssec_requests.inc();
        }
        let response = ResponseLabels::position(code, source);
        self.responses.increment(response);
        if let Some(seconds) = self.request_seconds.at(source as usize) {
            seconds.observe_duration(took);
        }
        for (sizes, bytes) in [
            (&self.request_bytes, request_bytes),
            (&self.response_bytes, reply_bytes),
        ] {
            if let Some(sizes) = sizes.at(transport as usize) {
                sizes.observe_bytes(bytes);
            }
        }
    }

    pub(crate) fn reply_not_received(&self) {
        self.unsent.inc();
    }

    pub(crate) fn connection_refused(&self, limit: LimitReached) {
        self.refused_connections.increment(limit as usize);
    }

    pub(crate) fn question_refused(&self, limit: LimitReached) {
        self.refused_questions.increment(limit as usize);
    }

    /// The upstream server at this place of the list has answered.
    pub(crate) fn upstream_answered(&self, upstream: usize, code: ResponseCode, took: Duration) {
        let position = UpstreamResponseLabels::position(upstream, code);
        if let Some(seconds) = self.upstream_seconds.at(position) {
            seconds.observe_duration(took);
        }
    }

    /// The upstream server at this place of the list has not answered.
    pub(crate) fn upstream_failed(&self, upstream: usize, failure: UpstreamFailure) {
        let position = UpstreamFailureLabels::position(upstream, failure);
        self.upstream_failures.increment(position);
    }

    /// The exposition in the `OpenMetrics` format, with these current values.
    pub(crate) fn expose(&self, figures: &DnsFigures<'_>) -> Result<String, fmt::Error> {
        self.gauges.fill(figures);
        self.text()
    }

    /// The exposition in the `OpenMetrics` format.
    pub fn text(&self) -> Result<String, fmt::Error> {
        let mut text = String::new();
        encode(&mut text, &self.registry)?;
        Ok(text)
    }
}

impl DnsGauges {
    fn register(&self, registry: &mut Registry) {
        registry.register(
            "ipvs_topo_dns_tcp_connections",
            "Open TCP connections",
            self.connections.clone(),
        );
        registry.register(
            "ipvs_topo_dns_forward_waiting",
            "Questions that wait for upstream servers",
            self.waiting.clone(),
        );
        registry.register(
            "ipvs_topo_dns_cluster_read",
            "1 after the first list of the cluster is complete",
            self.is_read.clone(),
        );
        registry.register(
            "ipvs_topo_api_behind",
            "1 while a collection is not read yet, or its changes do not arrive",
            self.behind.clone(),
        );
        self.api_requests.register(registry);
    }

    fn fill(&self, figures: &DnsFigures<'_>) {
        self.connections.set(to_u64(figures.connections));
        self.waiting.set(to_u64(figures.waiting_questions));
        self.is_read.set(u64::from(figures.is_cluster_read));
        let Some(sync_status) = figures.sync_status else {
            return;
        };
        for resource in sync_status.resources() {
            let is_behind = matches!(resource.phase, Phase::Listing | Phase::Stale);
            let label = WatchLabel {
                input: resource.name,
            };
            self.behind.get_or_create(&label).set(u64::from(is_behind));
        }
        let requests = sync_status.count().requests.into_iter();
        let requests = requests.map(|(of, count)| {
            let code = ClientRequests::code_label(of.code);
            (code, of.verb.method(), count)
        });
        self.api_requests.fill(sync_status.server(), requests);
    }
}

fn to_u64(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}
