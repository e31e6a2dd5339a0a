//! The gauges for [`Figures`]: cleared and filled at each scrape.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::figures::{Figures, Start};
use super::labels::FamilyLabel;
use super::server::ServerGauges;

type Whole = Gauge<u64, AtomicU64>;
type Real = Gauge<f64, AtomicU64>;

/// One field for each metric.
#[derive(Debug, Clone, Default)]
pub(crate) struct Gauges {
    virtual_servers: Family<FamilyLabel, Whole>,
    real_servers: Family<StateLabels, Whole>,
    foreign: Family<KindLabel, Whole>,
    waiting: Whole,
    warnings: Family<WarningLabel, Whole>,
    shares: Family<ShareLabels, Real>,
    last_pass: Family<FamilyLabel, Real>,
    last_queued: Family<FamilyLabel, Real>,
    pending_services: Whole,
    pending_slices: Whole,
    without_local_endpoints: Family<PolicyLabels, Whole>,
    oldest_pending: Real,
    objects: Family<ObjectLabel, Whole>,
    input_ready: Whole,
    start: Family<PhaseLabel, Real>,
    start_writes: Whole,
    server: ServerGauges,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StateLabels {
    ip_family: &'static str,
    state: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelSet)]
struct KindLabel {
    kind: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelSet)]
struct PhaseLabel {
    phase: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ObjectLabel {
    kind: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct WarningLabel {
    code: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelSet)]
struct PolicyLabels {
    ip_family: &'static str,
    traffic_policy: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ShareLabels {
    service: String,
    port: String,
    ip_family: &'static str,
    tier: String,
    kind: &'static str,
}

impl Gauges {
    pub(crate) fn register(&self, registry: &mut Registry) {
        self.register_kube_proxy(registry);
        self.register_own(registry);
        self.server.register(registry);
    }

    fn register_kube_proxy(&self, registry: &mut Registry) {
        registry.register(
            "kubeproxy_sync_proxy_rules_last_timestamp_seconds",
            "When the last pass or the last periodic comparison ended, as Unix time",
            self.last_pass.clone(),
        );
        registry.register(
            "kubeproxy_sync_proxy_rules_last_queued_timestamp_seconds",
            "When the last change was queued, as Unix time",
            self.last_queued.clone(),
        );
        registry.register(
            "kubeproxy_sync_proxy_rules_service_changes_pending",
            "Service changes that wait for a pass or for its end",
            self.pending_services.clone(),
        );
        registry.register(
            "kubeproxy_sync_proxy_rules_endpoint_changes_pending",
            "EndpointSlice changes that wait for a pass or for its end",
            self.pending_slices.clone(),
        );
        registry.register(
            "kubeproxy_sync_proxy_rules_no_local_endpoints_total",
            "Services with internalTrafficPolicy Local (internal) or externalTrafficPolicy Local (external) that have endpoints, but none on this node",
            self.without_local_endpoints.clone(),
        );
    }

    fn register_own(&self, registry: &mut Registry) {
        registry.register(
            "ipvs_topo_virtual_servers",
            "Virtual servers of this agent",
            self.virtual_servers.clone(),
        );
        registry.register(
            "ipvs_topo_real_servers",
            "Real servers of this agent, by state: active or draining",
            self.real_servers.clone(),
        );
        registry.register(
            "ipvs_topo_foreign",
            "Foreign virtual servers, which the agent leaves alone",
            self.foreign.clone(),
        );
        registry.register(
            "ipvs_topo_waiting_for_retry",
            "Virtual servers, routes and tables that failed and wait for their next try",
            self.waiting.clone(),
        );
        registry.register(
            "ipvs_topo_warnings",
            "Warnings about the input and the node, and Services with findings, by code",
            self.warnings.clone(),
        );
        registry.register(
            "ipvs_topo_tier_share",
            "Share of a level from 0 to 1, by kind: desired or programmed; for Services with a policy and at most 10 ports; at most 2,000 levels, from each namespace in turn",
            self.shares.clone(),
        );
        registry.register(
            "ipvs_topo_oldest_pending_seconds",
            "Age of the oldest change that is not in the kernel; 0 if there is none",
            self.oldest_pending.clone(),
        );
        registry.register(
            "ipvs_topo_input_objects",
            "Objects in the input, by kind",
            self.objects.clone(),
        );
        registry.register(
            "ipvs_topo_input_ready",
            "1 after the first full read of the input",
            self.input_ready.clone(),
        );
        self.register_start(registry);
    }

    fn register_start(&self, registry: &mut Registry) {
        registry.register(
            "ipvs_topo_start_seconds",
            "Duration of the start, by phase: read (the input), dump (of the kernel, during read), compute (the plan), apply, and pass (all after read)",
            self.start.clone(),
        );
        registry.register(
            "ipvs_topo_start_writes",
            "Commands sent to IPVS by the first pass; 0 if the kernel was correct",
            self.start_writes.clone(),
        );
    }

    pub(crate) fn fill(&self, figures: &Figures) {
        self.fill_servers(figures);
        self.fill_input(figures);
        self.fill_shares(figures);
        self.fill_start(figures.start);
        self.server.fill(figures.server.as_ref());
        fill_families(&self.last_pass, &figures.last_pass);
        fill_families(&self.last_queued, &figures.last_queued);
        self.pending_services.set(figures.pending_services);
        self.pending_slices.set(figures.pending_slices);
        self.oldest_pending.set(figures.oldest_pending_seconds);
    }

    fn fill_servers(&self, figures: &Figures) {
        self.virtual_servers.clear();
        for (&ip_family, &count) in &figures.virtual_servers {
            self.virtual_servers
                .get_or_create(&FamilyLabel { ip_family })
                .set(count);
        }
        self.real_servers.clear();
        for (&(ip_family, state), &count) in &figures.real_servers {
            self.real_servers
                .get_or_create(&StateLabels { ip_family, state })
                .set(count);
        }
        self.foreign.clear();
        for (&kind, &count) in &figures.foreign {
            self.foreign.get_or_create(&KindLabel { kind }).set(count);
        }
        self.waiting.set(figures.waiting);
    }

    fn fill_input(&self, figures: &Figures) {
        self.warnings.clear();
        for (code, &count) in &figures.warnings {
            self.warnings
                .get_or_create(&WarningLabel { code: code.clone() })
                .set(count);
        }
        self.objects.clear();
        for (kind, &count) in &figures.objects {
            self.objects
                .get_or_create(&ObjectLabel { kind: kind.clone() })
                .set(count);
        }
        self.input_ready.set(u64::from(figures.input_ready));
        self.without_local_endpoints.clear();
        for (&(ip_family, traffic_policy), &count) in &figures.without_local_endpoints {
            let labels = PolicyLabels {
                ip_family,
                traffic_policy,
            };
            self.without_local_endpoints
                .get_or_create(&labels)
                .set(count);
        }
    }

    fn fill_start(&self, start: Option<Start>) {
        self.start.clear();
        let Some(Start {
            read,
            dump,
            compute,
            apply,
            pass,
            writes,
        }) = start
        else {
            return;
        };
        let phases = [
            ("read", read),
            ("dump", dump),
            ("compute", compute),
            ("apply", apply),
            ("pass", pass),
        ];
        for (phase, seconds) in phases {
            self.start.get_or_create(&PhaseLabel { phase }).set(seconds);
        }
        self.start_writes.set(writes);
    }

    fn fill_shares(&self, figures: &Figures) {
        self.shares.clear();
        for share in &figures.shares {
            let labels = |kind| ShareLabels {
                service: share.service.clone(),
                port: share.port.clone(),
                ip_family: share.family,
                tier: share.tier.clone(),
                kind,
            };
            self.shares
                .get_or_create(&labels("desired"))
                .set(share.desired);
            self.shares
                .get_or_create(&labels("programmed"))
                .set(share.programmed);
        }
    }
}

fn fill_families(gauge: &Family<FamilyLabel, Real>, values: &BTreeMap<&'static str, f64>) {
    gauge.clear();
    for (&ip_family, &value) in values {
        gauge.get_or_create(&FamilyLabel { ip_family }).set(value);
    }
}
