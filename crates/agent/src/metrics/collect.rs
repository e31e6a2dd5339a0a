//! Collects the current values from the loop.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant, SystemTime};

use agent_api::describe;
use cluster::api::{Phase, SyncStatus};
use kube_io::Count;
use telemetry::ClientRequests;
use topology_core::policy::Mode;
use topology_core::resolve::ResolvedServer;

use super::figures::{Figures, MAX_SHARE_LEVELS, Server, Start, TierShare};
use super::http::AsyncFigures;
use crate::state::{AgentHandle, FamilyCounts, Overview, Pulse, StartTimes};

/// Queries the loop at each scrape.
#[derive(Debug, Clone)]
pub struct Collector {
    handle: AgentHandle,
    sync_status: Option<SyncStatus>,
    started: Instant,
    /// Time from the start of the process to the end of the first pass.
    ready_after: Arc<OnceLock<Duration>>,
}

impl Collector {
    /// Collects from the loop behind `handle` in a process that started at `started`. `sync_status`
    /// has the state of the watches, if the cluster is read from an API server.
    pub fn new(handle: AgentHandle, sync_status: Option<SyncStatus>, started: Instant) -> Self {
        Self {
            handle,
            sync_status,
            started,
            ready_after: Arc::default(),
        }
    }

    /// Waits for the end of the first pass, to measure the start of the process.
    pub async fn watch_start(mut self) {
        if self.handle.ready().await.is_ok() {
            self.ready_after.get_or_init(|| self.started.elapsed());
        }
    }

    /// The measurements of the start, when it is over.
    fn start(&self, times: &StartTimes) -> Option<Start> {
        let ready = self.ready_after.get()?;
        Some(Start {
            read: ready.saturating_sub(times.total).as_secs_f64(),
            dump: times.dump.as_secs_f64(),
            compute: times.compute.as_secs_f64(),
            apply: times.apply.as_secs_f64(),
            pass: times.total.as_secs_f64(),
            writes: times.steps,
        })
    }
}

impl AsyncFigures for Collector {
    /// The loop's last published state, with a query for the rest; without the rest if the loop is stopping.
    async fn figures(&self) -> Figures {
        let pulse = self.handle.pulse();
        let mut figures = of_pulse(&pulse);
        if let Ok(overview) = self.handle.overview(MAX_SHARE_LEVELS).await {
            add_overview(&mut figures, &overview);
        }
        figures.start = self.start(&pulse.start);
        figures.server = self.sync_status.as_ref().map(server);
        figures
    }
}

/// The requests to the API server, and their results.
fn server(sync_status: &SyncStatus) -> Server {
    let Count { requests, bytes } = sync_status.count();
    let requests = requests.into_iter().map(|(of, count)| {
        let code = ClientRequests::code_label(of.code);
        (
            (of.verb.as_str(), of.verb.method(), of.resource, code),
            count,
        )
    });
    let inputs = sync_status.resources();
    let last_received = inputs.iter().filter_map(|input| {
        let seconds = input.last_received?.as_duration().as_secs_f64();
        Some((input.name, seconds))
    });
    let stale = |phase: Phase| matches!(phase, Phase::Listing | Phase::Stale);
    Server {
        address: sync_status.server().to_owned(),
        requests: requests.collect(),
        bytes,
        last_received: last_received.collect(),
        node_source: if sync_status.is_mapped() {
            "map"
        } else {
            "nodes"
        },
        doubted: inputs
            .iter()
            .map(|input| (input.name, input.doubted))
            .collect(),
        behind: inputs
            .iter()
            .map(|input| (input.name, stale(input.phase)))
            .collect(),
    }
}

fn of_pulse(pulse: &Pulse) -> Figures {
    let families = [("IPv4", pulse.v4), ("IPv6", pulse.v6)];
    let states = |(family, counts): (&'static str, FamilyCounts)| {
        [
            ((family, "active"), counts.active),
            ((family, "draining"), counts.draining),
        ]
    };
    let both = |time: Option<SystemTime>| -> BTreeMap<&'static str, f64> {
        let seconds = time.map(since_1970);
        families
            .iter()
            .filter_map(|(family, _)| Some((*family, seconds?)))
            .collect()
    };
    Figures {
        virtual_servers: families
            .map(|(family, counts)| (family, counts.virtual_servers))
            .into(),
        real_servers: families.into_iter().flat_map(states).collect(),
        foreign: [("virtual-server", pulse.foreign)].into(),
        waiting: pulse.waiting,
        last_pass: both(pulse.last_pass),
        last_queued: both(pulse.last_queued),
        pending_services: pulse.pending_services,
        pending_slices: pulse.pending_slices,
        oldest_pending_seconds: pulse
            .oldest_pending()
            .map_or(0.0, |since| since.elapsed().as_secs_f64()),
        objects: [
            ("Service".to_owned(), pulse.services),
            ("Endpoint".to_owned(), pulse.endpoints),
        ]
        .into(),
        warnings: warnings(pulse),
        input_ready: pulse.input_ready,
        without_local_endpoints: pulse.without_local.clone(),
        ..Figures::default()
    }
}

/// Warnings about the node, and Services with each finding.
fn warnings(pulse: &Pulse) -> BTreeMap<String, u64> {
    let findings = pulse.findings.iter();
    let findings = findings.map(|(code, services)| ((*code).to_owned(), *services));
    let node = ("Node".to_owned(), pulse.node_warnings.len() as u64);
    findings.chain([node]).collect()
}

fn add_overview(figures: &mut Figures, overview: &Overview) {
    for warning in &overview.input_warnings {
        *figures
            .warnings
            .entry(describe::warning(warning).code)
            .or_default() += 1;
    }
    for server in &overview.decided {
        let family = server.server.key.family().as_str();
        figures.shares.extend(shares(server, family));
    }
}

/// The levels of a virtual server whose Service has a policy with levels.
fn shares(server: &ResolvedServer, family: &'static str) -> impl Iterator<Item = TierShare> {
    let decision = &server.decision;
    let asked = decision.source.is_policy();
    let levels = decision
        .levels
        .iter()
        .filter(move |_| asked && decision.mode != Mode::None);
    levels.map(move |level| TierShare {
        service: server.service.to_string(),
        port: server.port_name.to_string(),
        family,
        tier: level.key.to_string(),
        desired: level.desired.to_f64(),
        programmed: level.achieved.to_f64(),
    })
}

fn since_1970(time: SystemTime) -> f64 {
    time.duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default()
        .as_secs_f64()
}

#[cfg(test)]
mod tests {
    use cluster::source::{Options, read_text};
    use topology_core::model::ObjectName;
    use topology_core::resolve::{Viewpoint, resolve};

    use super::*;

    const SPEC: &str =
        "{mode: Weighted, levels: [{key: zone, weight: 80}, {any: true, weight: 20}]";

    /// The series of a Service with these annotations and policies, one endpoint on this node and
    /// `elsewhere` others.
    fn shares_of(annotations: &str, policies: &str, elsewhere: u8) -> Vec<TierShare> {
        let far = (0..elsewhere).map(|number| format!(", {{addresses: [10.244.1.{number}]}}"));
        let far: String = far.collect();
        let text = format!(
            "{{apiVersion: v1, kind: Node, metadata: {{name: n1, labels: {{topology.kubernetes.io/zone: a}}}}}}\n\
             ---\n{{apiVersion: v1, kind: Service, metadata: {{name: s, namespace: shop, annotations: {{{annotations}}}}}, spec: {{clusterIP: 10.96.0.1, ports: [{{port: 80}}]}}}}\n\
             ---\n{{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {{name: s, namespace: shop, labels: {{kubernetes.io/service-name: s}}}}, addressType: IPv4, ports: [{{port: 80}}], endpoints: [{{addresses: [10.244.0.1], nodeName: n1}}{far}]}}\n\
             {policies}"
        );
        let loaded = read_text("test", text.as_bytes(), &Options::default()).unwrap();
        assert_eq!(loaded.warnings, []);
        let name = ObjectName::new("shop", "s");
        let decided = resolve(&loaded.snapshot, &Viewpoint::new("n1"), &name).servers;
        let overview = Overview {
            decided,
            input_warnings: Vec::new(),
        };
        let mut figures = Figures::default();
        add_overview(&mut figures, &overview);
        figures.shares
    }

    #[test]
    fn d12_the_gauge_has_the_share_that_mh_achieves_and_not_that_of_the_policy() {
        let annotations =
            "topology.ipvs-topo.io/weights: 'zone=99,*=1', topology.ipvs-topo.io/scheduler: mh";
        let shares = shares_of(annotations, "", 5);
        let [zone, any] = &*shares else {
            panic!("{shares:?}")
        };
        assert_eq!((zone.desired, any.desired), (0.99, 0.01));
        // The largest weight is 63: 63 of 68.
        assert!((zone.programmed - 0.926).abs() < 0.004, "{zone:?}");
        assert!(
            (zone.programmed + any.programmed - 1.0).abs() < 1e-9,
            "{any:?}"
        );
    }

    fn policy(kind: &str, more: &str) -> String {
        format!(
            "---\n{{apiVersion: topology.ipvs-topo.io/v1alpha1, kind: {kind}, metadata: {{name: near, namespace: shop}}, spec: {SPEC}{more}}}}}\n"
        )
    }

    #[test]
    fn levels_have_shares_under_any_policy() {
        let named = "topology.ipvs-topo.io/policy: near";
        let unselected = ", serviceSelector: {matchLabels: {no: one}}";
        let cases = [
            (
                "topology.ipvs-topo.io/weights: 'zone=80,*=20'",
                String::new(),
            ),
            ("", policy("TopologyPolicy", "")),
            ("", policy("ClusterTopologyPolicy", "")),
            (
                "",
                policy("ClusterTopologyPolicy", ", enforcement: Override"),
            ),
            (named, policy("TopologyPolicy", unselected)),
        ];
        for (annotations, policies) in cases {
            let shares = shares_of(annotations, &policies, 1).into_iter();
            let tiers: Vec<String> = shares.map(|share| share.tier).collect();
            assert_eq!(tiers, ["zone", "*"], "{annotations} {policies}");
        }
        assert!(shares_of("", "", 1).is_empty());
    }
}
