//! Generated input never panics, does not affect the good objects beside it, and each warning has
//! the line of its object.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fmt;

use cluster::source::{Options, ReadError, read_text};
use proptest::prelude::*;
use topology_core::model::Enforcement;
use topology_core::policy::LevelKey;

/// JSON made of keys and values that occur in Kubernetes objects.
#[derive(Debug, Clone)]
enum Json {
    Scalar(String),
    List(Vec<Json>),
    Map(Vec<(String, Json)>),
}

impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Scalar(text) => f.write_str(text),
            Self::List(items) => {
                let items: Vec<String> = items.iter().map(ToString::to_string).collect();
                write!(f, "[{}]", items.join(","))
            }
            Self::Map(entries) => {
                let entries: Vec<String> = entries
                    .iter()
                    .map(|(key, value)| format!("{key:?}:{value}"))
                    .collect();
                write!(f, "{{{}}}", entries.join(","))
            }
        }
    }
}

const KEYS: [&str; 87] = [
    "podCIDRs",
    "metadata",
    "name",
    "namespace",
    "labels",
    "annotations",
    "creationTimestamp",
    "spec",
    "status",
    "addresses",
    "type",
    "address",
    "clusterIP",
    "clusterIPs",
    "ipFamilies",
    "ports",
    "port",
    "protocol",
    "targetPort",
    "nodePort",
    "sessionAffinity",
    "sessionAffinityConfig",
    "clientIP",
    "timeoutSeconds",
    "internalTrafficPolicy",
    "externalTrafficPolicy",
    "externalIPs",
    "loadBalancerSourceRanges",
    "healthCheckNodePort",
    "topologyKeys",
    "loadBalancer",
    "ingress",
    "ip",
    "ipMode",
    "addressType",
    "endpoints",
    "conditions",
    "ready",
    "serving",
    "terminating",
    "nodeName",
    "zone",
    "hints",
    "forZones",
    "forNodes",
    "topology",
    "cidrs",
    "allocatable",
    "cpu",
    "items",
    "priority",
    "enforcement",
    "namespaceSelector",
    "serviceSelector",
    "nodeSelector",
    "portNames",
    "matchLabels",
    "matchExpressions",
    "key",
    "operator",
    "values",
    "mode",
    "levels",
    "any",
    "weight",
    "minReadyEndpoints",
    "minReadyPercent",
    "weighting",
    "emptyTier",
    "spill",
    "overprovisionPercent",
    "guard",
    "maxOverloadPercent",
    "demand",
    "staticDemand",
    "avoid",
    "onNoMatch",
    "subset",
    "maxWeight",
    "ownerLimits",
    "allowedModes",
    "match",
    "scope",
    "expiresAt",
    "rampSeconds",
    "reason",
    "topology.ipvs-topo.io/weights",
];

const SCALARS: [&str; 42] = [
    "null",
    "true",
    "false",
    "0",
    "1",
    "80",
    "65535",
    "65536",
    "-1",
    "1.5",
    "1e99",
    "\"\"",
    "\"80\"",
    "\"None\"",
    "\"10.96.0.10\"",
    "\"10.96.0.300\"",
    "\"fd00::10\"",
    "\"::ffff:1.2.3.4\"",
    "\"127.0.0.1\"",
    "\"TCP\"",
    "\"UDP\"",
    "\"tcp\"",
    "\"Local\"",
    "\"IPv4\"",
    "\"IPv6\"",
    "\"ClientIP\"",
    "\"*\"",
    "\"node=80,zone=15,*=5\"",
    "\"10.96.0.0/12\"",
    "\"2025-05-05T08:00:00Z\"",
    "\"Hard\"",
    "\"Prefer\"",
    "\"Weighted\"",
    "\"Static\"",
    "\"EndpointBias\"",
    "\"Drop\"",
    "\"In\"",
    "\"Exists\"",
    "\"Both\"",
    "\"node\"",
    "\"example.com/rack\"",
    "\"a b\"",
];

fn json() -> impl Strategy<Value = Json> {
    let scalar = prop_oneof![
        4 => prop::sample::select(&SCALARS[..]).prop_map(|text| Json::Scalar(text.to_owned())),
        1 => "[ -~\u{e9}\u{1F600}]{0,20}".prop_map(|text| {
            Json::Scalar(format!("\"{}\"", text.replace(['\\', '"'], "")))
        }),
    ];
    scalar.prop_recursive(6, 80, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Json::List),
            mapping(inner).prop_map(Json::Map),
        ]
    })
}

fn mapping(inner: impl Strategy<Value = Json>) -> impl Strategy<Value = Vec<(String, Json)>> {
    let key = prop::sample::select(&KEYS[..]).prop_map(str::to_owned);
    prop::collection::btree_map(key, inner, 0..6).prop_map(|map| map.into_iter().collect())
}

/// An object of a known kind with a valid name; the other fields are random.
fn object() -> impl Strategy<Value = String> {
    const OBJECT_KINDS: [&str; 8] = [
        "v1|Node",
        "v1|Namespace",
        "v1|Service",
        "discovery.k8s.io/v1|EndpointSlice",
        "networking.k8s.io/v1|ServiceCIDR",
        "topology.ipvs-topo.io/v1alpha1|TopologyPolicy",
        "topology.ipvs-topo.io/v1alpha1|ClusterTopologyPolicy",
        "topology.ipvs-topo.io/v1alpha1|TopologyDrain",
    ];
    (
        prop::sample::select(&OBJECT_KINDS[..]),
        mapping(json()),
        mapping(json()),
    )
        .prop_map(|(kind, metadata, rest)| {
            let (version, kind) = kind.split_once('|').unwrap();
            let mut metadata: Vec<(String, Json)> = metadata
                .into_iter()
                .filter(|(key, _)| !["name", "namespace"].contains(&&**key))
                .collect();
            metadata.push(("name".to_owned(), Json::Scalar("\"odd\"".to_owned())));
            metadata.push((
                "namespace".to_owned(),
                Json::Scalar("\"elsewhere\"".to_owned()),
            ));
            let mut entries: Vec<(String, Json)> = rest
                .into_iter()
                .filter(|(key, _)| key != "metadata")
                .collect();
            entries.push((
                "apiVersion".to_owned(),
                Json::Scalar(format!("{version:?}")),
            ));
            entries.push(("kind".to_owned(), Json::Scalar(format!("{kind:?}"))));
            entries.push(("metadata".to_owned(), Json::Map(metadata)));
            Json::Map(entries).to_string()
        })
}

/// A line with `key` and one of `values`, or no line.
fn entry(key: &'static str, values: &'static [&'static str]) -> impl Strategy<Value = String> {
    let value = prop::sample::select(values);
    prop::option::weighted(0.4, value).prop_map(move |value| {
        value.map_or_else(String::new, |value| format!("  {key}: {value}\n"))
    })
}

/// A policy that is valid or nearly so.
fn policy() -> impl Strategy<Value = String> {
    let level = prop::sample::select(
        &[
            "{key: node, weight: 1}",
            "{key: zone}",
            "{key: topology.kubernetes.io/zone, weight: 0}",
            "{key: rack, weight: 10000, minReadyPercent: 50}",
            "{any: true, weight: 5}",
            "{any: true}",
            "{key: region, minReadyEndpoints: 2}",
        ][..],
    );
    (
        prop::sample::select(&["TopologyPolicy", "ClusterTopologyPolicy"][..]),
        prop::sample::select(&["Hard", "Prefer", "Weighted", "Balanced", "None"][..]),
        prop::collection::vec(level, 0..4),
        entry("enforcement", &["Default", "Override", "null"]),
        entry("weighting", &["TierShare", "EndpointBias"]),
        entry("guard", &["{panicPercent: 50}", "{demand: Static, staticDemand: {a: 1}}", "{demand: Static}"]),
        entry("onNoMatch", &["Reject", "Drop"]),
        entry("avoid", &["[{key: node}]", "[{key: node, mode: Soft}]", "[{key: node}, {key: node}]"]),
        entry("ownerLimits", &["{}", "{allowedModes: [Hard]}"]),
    )
        .prop_map(|(kind, mode, levels, a, b, c, d, e, f)| {
            let levels = levels.join(", ");
            format!(
                "apiVersion: topology.ipvs-topo.io/v1alpha1\nkind: {kind}\nmetadata: {{name: p}}\nspec:\n  mode: {mode}\n  levels: [{levels}]\n{a}{b}{c}{d}{e}{f}"
            )
        })
}

const GOOD: &str = "
apiVersion: v1
kind: Service
metadata: {name: good, namespace: shop}
spec: {clusterIP: 10.96.200.200, ports: [{name: http, port: 80}]}
";

proptest! {
    #[test]
    fn any_json_is_read_without_a_panic(json in json()) {
        match read_text("any.json", json.to_string().as_bytes(), &Options::default()) {
            Ok(_) | Err(ReadError::Unusable { .. }) => {}
            Err(error) => prop_assert!(false, "{error}"),
        }
    }

    #[test]
    fn a_random_object_does_not_affect_a_valid_object_beside_it(odd in object(), first in any::<bool>()) {
        let text = if first { format!("{odd}\n---{GOOD}") } else { format!("{GOOD}---\n{odd}\n") };
        let loaded = read_text("two.yaml", text.as_bytes(), &Options::default()).unwrap();
        let good = loaded.snapshot.services().find(|service| &*service.name.name == "good").unwrap();
        prop_assert_eq!(good.ports.len(), 1);
        let odd_line = if first { 1 } else { 7 };
        for warning in &loaded.warnings {
            prop_assert!(warning.subject.to_string().contains("odd"), "{}", warning);
            prop_assert_eq!(warning.line, odd_line, "{}", warning);
            prop_assert!(!warning.to_string().contains('\n'), "{}", warning);
        }
    }

    #[test]
    fn a_policy_is_used_as_a_whole_or_refused_with_a_warning(text in policy()) {
        let loaded = read_text("policy.yaml", text.as_bytes(), &Options::default()).unwrap();
        let used: Vec<_> = loaded.snapshot.policies().collect();
        prop_assert_eq!(used.is_empty(), !loaded.warnings.is_empty(), "{}", text);
        for used in used {
            let last = used.policy.levels.len().saturating_sub(1);
            for (at, level) in used.policy.levels.iter().enumerate() {
                prop_assert!(at == last || level.key != LevelKey::Any, "{}", text);
            }
            let bounded = used.policy.is_bounded();
            prop_assert!(!bounded || used.policy.panic_percent == 0, "{}", text);
            prop_assert!(used.namespace.is_none() || used.enforcement == Enforcement::Default, "{}", text);
        }
    }

    #[test]
    fn any_text_is_read_without_a_panic(text in "([ \\-:\\[\\]{}\"'&*!|>%@#,a-c0-9\n\t]|- |: |---\n|<<: )*") {
        drop(read_text("any.yaml", text.as_bytes(), &Options::default()));
    }
}
