//! Tests the reports of several clusters.

mod storm;

use std::sync::Arc;

use cluster::source::{Loaded, Options, read_text};
use cluster::warning::{Code, Warning};
use crd::MAX_FALLBACKS;
use crd::topology_agent::{
    AgentCounts, AgentPhase, AgentStatus, DrainInUse, Fallback, NodeWarning,
};
use proptest::prelude::*;
use topology_core::model::{ObjectName, PolicyName};
use topology_core::resolve::{Viewpoint, resolve};
use topology_core::scheduler::Scheduler;
use topology_core::snapshot::Snapshot;

use super::compare::{Difference, difference, keep_times};
use super::*;

/// 2026-11-21T20:00:00Z.
const NOW: i64 = 1_795_291_200_000;

/// Two nodes of zone `a` and one of zone `b`.
const NODES: &str = "
{apiVersion: v1, kind: Node, metadata: {name: n1, labels: {topology.kubernetes.io/zone: a}}}
---
{apiVersion: v1, kind: Node, metadata: {name: n2, labels: {topology.kubernetes.io/zone: a}}}
---
{apiVersion: v1, kind: Node, metadata: {name: n3, labels: {topology.kubernetes.io/zone: b}}}
";

/// A Service with an optional annotation and an endpoint on each of the nodes.
fn service(number: usize, annotation: &str, nodes: &[&str]) -> String {
    let annotations = match annotation {
        "" => String::new(),
        annotation => format!(", annotations: {{topology.ipvs-topo.io/{annotation}}}"),
    };
    let endpoint = |(at, node): (usize, &&str)| {
        let (node, ready) = node
            .strip_prefix('!')
            .map_or((*node, true), |node| (node, false));
        format!(
            "{{addresses: [10.244.{number}.{at}], nodeName: {node}, conditions: {{ready: {ready}}}}}"
        )
    };
    let endpoints: Vec<String> = nodes.iter().enumerate().map(endpoint).collect();
    format!(
        "---\n{{apiVersion: v1, kind: Service, metadata: {{name: s{number}, namespace: shop{annotations}}}, spec: {{clusterIP: 10.96.0.{number}, ports: [{{name: http, port: 80}}, {{name: more, port: 81}}]}}}}\n\
         ---\n{{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {{name: s{number}, namespace: shop, labels: {{kubernetes.io/service-name: s{number}}}}}, addressType: IPv4, ports: [{{name: http, port: 8080}}, {{name: more, port: 8081}}], endpoints: [{}]}}\n",
        endpoints.join(", ")
    )
}

fn ours(kind: &str, name: &str, spec: &str) -> String {
    format!(
        "---\n{{apiVersion: topology.ipvs-topo.io/v1alpha1, kind: {kind}, metadata: {{name: {name}, namespace: shop, generation: 3}}, spec: {spec}}}\n"
    )
}

fn drain(name: &str, spec: &str) -> String {
    let spec = format!("{{expiresAt: 2026-11-21T22:00:00Z, rampSeconds: 0, {spec}}}");
    ours("TopologyDrain", name, &spec)
}

fn cluster(parts: &[String]) -> Snapshot {
    let loaded = load(parts);
    let is_other = |warning: &&Warning| warning.code != Code::LevelUnknown;
    assert_eq!(loaded.warnings.iter().find(is_other), None);
    loaded.snapshot
}

fn load(parts: &[String]) -> Loaded {
    let options = Options {
        now: Some(NOW),
        ..Options::default()
    };
    let text = format!("{NODES}{}", parts.concat());
    read_text("cluster", text.as_bytes(), &options).unwrap()
}

fn contribution(snapshot: &Snapshot, node: &str, name: &ObjectName) -> Contribution {
    let me = Viewpoint {
        now: Some(NOW),
        ..Viewpoint::new(node)
    };
    Contribution::of(&resolve(snapshot, &me, name))
}

/// The report of the agent of `n1`.
fn summary(parts: &[String]) -> DecisionSummary {
    account_of("n1", parts)
}

fn account_of(node: &str, parts: &[String]) -> DecisionSummary {
    account_in(&cluster(parts), node)
}

fn account_in(snapshot: &Snapshot, node: &str) -> DecisionSummary {
    let mut aggregate = Aggregate::default();
    for service in snapshot.services() {
        aggregate.replace(
            &service.name,
            contribution(snapshot, node, &service.name),
            NOW,
        );
    }
    aggregate.summarize(snapshot, NOW, node)
}

/// Reason, from and to of the only fallback.
fn only(summary: &DecisionSummary) -> [&str; 3] {
    let [
        Fallback {
            reason, from, to, ..
        },
    ] = &summary.fallbacks[..]
    else {
        panic!("{summary:?}");
    };
    [reason.as_str(), from.as_deref().unwrap_or_default(), to]
}

#[test]
fn each_fallback_is_reported_with_its_reason() {
    let cases = [
        (
            "keys: 'node,zone,*'",
            &["n3"][..],
            ["Empty", "Prefer", "Uniform"],
        ),
        (
            "weights: 'node=80,zone=15,*=5'",
            &["n3"],
            ["Empty", "Weighted", "Uniform"],
        ),
        ("keys: 'zone'", &["n3"], ["NoMatch", "Hard", "Nothing"]),
        ("keys: 'Zone'", &["n3"], ["LevelUnknown", "Hard", "Nothing"]),
        (
            "avoid: zone:hard, topology.ipvs-topo.io/keys: 'node,*'",
            &["n1"],
            ["NoMatch", "Prefer", "Nothing"],
        ),
        (
            "weights: 'zone=80,*=20', topology.ipvs-topo.io/min-ready: zone=2",
            &["n1", "n3"],
            ["BelowMin", "Weighted", "Uniform"],
        ),
    ];
    for (annotation, nodes, wanted) in cases {
        let summary = summary(&[service(1, annotation, nodes)]);
        assert_eq!(only(&summary), wanted, "{annotation}");
        let [fallback] = &summary.fallbacks[..] else {
            panic!()
        };
        assert_eq!(fallback.service, ObjectName::new("shop", "s1"));
        assert_eq!(fallback.policy, None);
        assert_eq!(fallback.since, "2026-11-21T20:00:00Z");
    }
    let panics = "{mode: Prefer, levels: [{key: zone}, {any: true}], guard: {panicPercent: 60}}";
    let panics = [
        service(1, "", &["n1", "!n2"]),
        ours("TopologyPolicy", "near", panics),
    ];
    let summary = summary(&panics);
    assert_eq!(only(&summary), ["Panic", "Prefer", "Uniform"]);
    assert_eq!(
        summary.fallbacks[0].policy,
        Some(PolicyName::namespaced("shop", "near"))
    );
    let unknown = [service(1, "keys: 'zone,*'", &["n1"])];
    assert_eq!(
        only(&account_of("n9", &unknown)),
        ["NodeUnknown", "Prefer", "Uniform"]
    );
}

#[test]
fn invalid_annotations_are_reported_with_the_deciding_source() {
    let policy = |more: &str| {
        let spec = format!("{{mode: Prefer, levels: [{{key: zone}}, {{any: true}}]{more}}}");
        ours("TopologyPolicy", "near", &spec)
    };
    let bad = |nodes: &[&str]| service(1, "weights: 'zone=80,*=many'", nodes);
    let overrides = ours(
        "ClusterTopologyPolicy",
        "all",
        "{enforcement: Override, mode: None}",
    );
    let cases = [
        (vec![bad(&["n1", "n3"])], ["Invalid", "", "Uniform"], None),
        (vec![bad(&[])], ["Invalid", "", "Uniform"], None),
        (
            vec![bad(&["n1"]), policy("")],
            ["Invalid", "", "Prefer"],
            None,
        ),
        // It is permanent, so a fallback of the deciding policy would hide it.
        (
            vec![bad(&["n3"]), policy("")],
            ["Invalid", "", "Prefer"],
            None,
        ),
    ];
    let cases: [(Vec<String>, [&str; 3], Option<PolicyName>); 4] = cases;
    for (parts, wanted, asked) in cases {
        let loaded = load(&parts);
        assert_eq!(loaded.warnings.len(), 1, "{:?}", loaded.warnings);
        let summary = account_in(&loaded.snapshot, "n1");
        assert_eq!(only(&summary), wanted, "{parts:?}");
        assert_eq!(summary.fallbacks[0].policy, asked);
    }
    // Valid annotations would not decide either.
    let summary = account_in(&load(&[bad(&["n1"]), overrides]).snapshot, "n1");
    assert_eq!(summary.fallbacks, []);
}

#[test]
fn a_missing_policy_or_an_invalid_name_is_a_fallback() {
    let near = ours(
        "TopologyPolicy",
        "near",
        "{mode: Prefer, levels: [{key: zone}, {any: true}]}",
    );
    let named = |name: &str| service(1, &format!("policy: {name}"), &["n1", "n3"]);
    for (parts, expected) in [
        (vec![named("other")], ["Invalid", "", "Uniform"]),
        (
            vec![near.clone(), named("other")],
            ["Invalid", "", "Prefer"],
        ),
    ] {
        assert_eq!(only(&summary(&parts)), expected, "{parts:?}");
    }
    let found = account_in(&load(&[near.clone(), named("Near")]).snapshot, "n1");
    assert_eq!(only(&found), ["Invalid", "Hard", "Nothing"]);
    assert_eq!(summary(&[near, named("near")]).fallbacks, []);
}

#[test]
fn a_mode_outside_owner_limits_is_a_fallback_to_the_deciding_source() {
    let limits = |spec: &str| {
        let spec = format!("{{{spec}, ownerLimits: {{allowedModes: [Prefer]}}}}");
        ours("ClusterTopologyPolicy", "all", &spec)
    };
    let prefer = limits("mode: Prefer, levels: [{key: zone}, {any: true}]");
    let refused = service(1, "weights: 'zone=80,*=20'", &["n1", "n3"]);
    let found = summary(&[prefer.clone(), refused]);
    assert_eq!(only(&found), ["NotAllowed", "Weighted", "Prefer"]);
    assert_eq!(found.fallbacks[0].policy, None, "annotations asked");
    let allowed = service(1, "keys: 'zone,*'", &["n1", "n3"]);
    assert_eq!(summary(&[prefer, allowed]).fallbacks, []);
}

/// A Service has one fallback in the report. The state of endpoints does not hide an error of the
/// owner.
#[test]
fn a_mode_that_is_not_allowed_is_reported_although_a_level_is_empty() {
    let limits =
        "{mode: Prefer, levels: [{key: zone}, {any: true}], ownerLimits: {allowedModes: [Prefer]}}";
    let parts = [
        ours("ClusterTopologyPolicy", "all", limits),
        service(1, "weights: 'zone=80,*=20'", &["n3"]),
    ];
    assert_eq!(only(&summary(&parts)), ["NotAllowed", "Weighted", "Prefer"]);
}

#[test]
fn a_cap_below_owner_limits_is_a_fallback_to_the_minimum() {
    let limits = "{mode: None, ownerLimits: {minMaxOverloadPercent: 150}}";
    let of = |percent: u32| {
        let asked =
            format!("weights: 'zone=80,*=20', topology.ipvs-topo.io/max-overload: '{percent}%'");
        summary(&[
            ours("ClusterTopologyPolicy", "all", limits),
            service(1, &asked, &["n1", "n3"]),
        ])
    };
    let clipped = of(120);
    assert_eq!(only(&clipped), ["Clipped", "Weighted", "Weighted"]);
    assert_eq!(clipped.fallbacks[0].policy, None, "annotations asked");
    assert_eq!(of(200).fallbacks, []);
}

#[test]
fn a_missing_scheduler_is_reported_with_the_mode_that_stays() {
    let name = ObjectName::new("shop", "s1");
    let report = |missing: &[Scheduler], nodes: &[&str]| {
        let snapshot = cluster(&[service(1, "scheduler: mh", nodes)]);
        let me = Viewpoint {
            now: Some(NOW),
            missing: Arc::new(missing.iter().copied().collect()),
            ..Viewpoint::new("n1")
        };
        let mut aggregate = Aggregate::default();
        aggregate.replace(
            &name,
            Contribution::of(&resolve(&snapshot, &me, &name)),
            NOW,
        );
        aggregate.summarize(&snapshot, NOW, "n1")
    };
    for nodes in [&["n1", "n3"][..], &["!n1"], &[]] {
        let missing = report(&["mh".parse().unwrap()], nodes);
        assert_eq!(only(&missing), ["SchedulerMissing", "None", "None"]);
        assert_eq!(report(&[], nodes).fallbacks, []);
    }
}

#[test]
fn the_requested_result_is_no_fallback() {
    let cases = [
        ("", &["n3"][..]),
        ("keys: 'node,zone,*'", &["n2"]),
        ("weights: 'node=80,zone=15,*=5'", &["n2", "n3"]),
        ("keys: 'zone'", &["!n1"]),
        ("keys: 'zone'", &[]),
        ("mode: none", &["n3"]),
    ];
    for (annotation, nodes) in cases {
        let summary = summary(&[service(1, annotation, nodes)]);
        let nothing = DecisionSummary {
            nodes: 3,
            ..DecisionSummary::default()
        };
        assert_eq!(summary, nothing, "{annotation} {nodes:?}");
    }
}

#[test]
fn only_deciding_policies_are_reported_with_their_generation() {
    let spec = "{mode: Prefer, levels: [{key: zone}, {any: true}]}";
    let parts = [
        ours("TopologyPolicy", "near", spec),
        ours("ClusterTopologyPolicy", "all", spec),
        service(1, "", &["n1"]),
        service(2, "", &["n1"]),
        service(3, "keys: 'zone,*'", &["n1"]),
    ];
    let policies = summary(&parts).policies;
    let shown = serde_json::to_value(&policies).unwrap();
    assert_eq!(
        shown,
        serde_json::json!([
            { "kind": "TopologyPolicy", "namespace": "shop", "name": "near", "generation": 3, "services": 2 },
        ])
    );
}

#[test]
fn drains_are_reported_with_endpoints_counted_once_and_skipped_services() {
    let zone_a = "match: {key: zone, values: [a]}";
    let parts = [
        drain("a", zone_a),
        drain("clients", "scope: Clients, match: {key: zone, values: [b]}"),
        service(1, "", &["n1", "n2", "n3"]),
        service(2, "", &["n1"]),
        service(3, "keys: 'zone'", &["n1", "n3"]),
    ];
    let summary = summary(&parts);
    let drained = |name: &str, endpoints, services_skipped| DrainInUse {
        name: name.to_owned(),
        generation: 3,
        endpoints,
        services_skipped,
    };
    assert_eq!(
        summary.drains,
        [drained("a", 2, 2), drained("clients", 0, 0)]
    );
    assert_eq!(only(&summary), ["DrainIgnored", "None", "None"]);
    let over = [drain("a", zone_a), service(1, "", &["n1", "n3"])];
    let (snapshot, aggregate) = (cluster(&over), Aggregate::default());
    assert_eq!(
        aggregate.summarize(&snapshot, NOW + 7_200_000, "n1").drains,
        []
    );
}

#[test]
fn the_latest_fallbacks_are_listed_and_all_are_counted() {
    let parts: Vec<String> = (1..=70)
        .map(|number| service(number, "keys: zone", &["n3"]))
        .collect();
    let snapshot = cluster(&parts);
    let mut aggregate = Aggregate::default();
    for number in 1..=70 {
        let name = ObjectName::new("shop", format!("s{number}"));
        let contribution = contribution(&snapshot, "n1", &name);
        aggregate.replace(&name, contribution.clone(), NOW + number * 1000);
        aggregate.replace(&name, contribution, NOW + 3_600_000);
    }
    let summary = aggregate.summarize(&snapshot, NOW, "n1");
    assert_eq!(
        (aggregate.fallbacks(), summary.fallbacks.len()),
        (70, MAX_FALLBACKS)
    );
    assert_eq!(
        summary.fallbacks[0].service,
        ObjectName::new("shop", "s70"),
        "its age stays"
    );
}

#[test]
fn a_restart_keeps_the_age_of_fallbacks_and_amounts_are_no_news() {
    let fallback = |service: &str, since: &str| Fallback {
        service: ObjectName::new("shop", service),
        since: since.to_owned(),
        ..Fallback::default()
    };
    let report = |fallbacks: &[Fallback]| AgentStatus {
        fallbacks: fallbacks.to_vec(),
        ..AgentStatus::default()
    };
    let before = report(&[
        fallback("b", "2026-11-21T20:00:00Z"),
        fallback("c", "2026-11-21T19:00:00Z"),
    ]);
    let mut after = report(&[
        fallback("a", "2026-11-21T21:00:00Z"),
        fallback("b", "2026-11-21T21:00:00Z"),
    ]);
    keep_times(&mut after, &before);
    let wanted = [
        fallback("a", "2026-11-21T21:00:00Z"),
        fallback("b", "2026-11-21T20:00:00Z"),
    ];
    assert_eq!(after.fallbacks, wanted);
    assert_eq!(difference(&after, Some(&before)), Difference::News);
    assert_eq!(difference(&after, None), Difference::News);
    let mut more = after.clone();
    assert_eq!(difference(&more, Some(&after)), Difference::None);
    more.counts.real_servers = 9;
    assert_eq!(difference(&more, Some(&after)), Difference::Amounts);
    more.phase = AgentPhase::Degraded;
    assert_eq!(difference(&more, Some(&after)), Difference::News);
}

#[test]
fn a_written_report_is_read_unchanged() {
    let spec = "{mode: Prefer, levels: [{key: zone}, {any: true}]}";
    let parts = [
        ours("TopologyPolicy", "near", spec),
        drain("b", "match: {key: zone, values: [b]}"),
        service(1, "", &["n3"]),
    ];
    let summary = summary(&parts);
    let report = AgentStatus {
        version: "0.1.0".to_owned(),
        phase: AgentPhase::Degraded,
        policies: summary.policies,
        drains: summary.drains,
        fallbacks: summary.fallbacks,
        warnings: vec![NodeWarning {
            code: "OtherProxy".to_owned(),
            message: "a kube-proxy".to_owned(),
        }],
        counts: AgentCounts {
            services: 1,
            ..AgentCounts::default()
        },
    };
    assert_eq!(report.fallbacks.len(), 1);
    let written = serde_json::to_value(&report).unwrap();
    assert_eq!(
        serde_json::from_value::<AgentStatus>(written).unwrap(),
        report
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Services change in any order. The totals equal those of the last contributions.
    #[test]
    fn running_totals_equal_those_of_a_fresh_start(steps in prop::collection::vec((1..5_usize, 0..5_usize), 0..40)) {
        let spec = "{mode: Prefer, levels: [{key: zone}, {any: true}], serviceSelector: {}}";
        let common = [ours("ClusterTopologyPolicy", "all", spec), drain("b", "match: {key: zone, values: [b]}")];
        let kinds = [("keys: 'zone'", &["n3"][..]), ("", &["n3"]), ("", &["n1", "n3"]), ("keys: 'zone,*'", &["n1", "n3"]), ("", &[])];
        let world = |kind: usize| {
            let (annotation, nodes) = kinds[kind];
            let services = (1..5).map(|number| service(number, annotation, nodes));
            cluster(&common.iter().cloned().chain(services).collect::<Vec<_>>())
        };
        let worlds: Vec<Snapshot> = (0..kinds.len()).map(world).collect();
        let (mut running, mut last) = (Aggregate::default(), std::collections::BTreeMap::new());
        for (number, kind) in steps {
            let name = ObjectName::new("shop", format!("s{number}"));
            running.replace(&name, contribution(&worlds[kind], "n1", &name), NOW);
            last.insert(name, kind);
        }
        let mut fresh = Aggregate::default();
        for (name, kind) in last {
            fresh.replace(&name, contribution(&worlds[kind], "n1", &name), NOW);
        }
        prop_assert_eq!(running.summarize(&worlds[0], NOW, "n1"), fresh.summarize(&worlds[0], NOW, "n1"));
    }
}
