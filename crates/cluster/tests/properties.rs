//! Whatever is written, nothing panics, what is good beside it is used, and warnings say where.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fmt;

use cluster::source::{Options, ReadError, read_text};
use proptest::prelude::*;

/// Any JSON, made of words that occur in Kubernetes objects.
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

const KEYS: [&str; 50] = [
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
    "topology.ipvs-topo.io/weights",
];

const SCALARS: [&str; 30] = [
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

/// An object of one of our kinds, with a good name and anything else.
fn object() -> impl Strategy<Value = String> {
    const OBJECT_KINDS: [&str; 5] = [
        "v1|Node",
        "v1|Namespace",
        "v1|Service",
        "discovery.k8s.io/v1|EndpointSlice",
        "networking.k8s.io/v1|ServiceCIDR",
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
    fn an_odd_object_does_not_touch_the_good_one_beside_it(odd in object(), first in any::<bool>()) {
        let text = if first { format!("{odd}\n---{GOOD}") } else { format!("{GOOD}---\n{odd}\n") };
        let loaded = read_text("two.yaml", text.as_bytes(), &Options::default()).unwrap();
        let good = loaded.snapshot.services().find(|service| &*service.name.name == "good").unwrap();
        prop_assert_eq!(good.ports.len(), 1);
        let odd_line = if first { 1 } else { 7 };
        for warning in &loaded.warnings {
            prop_assert_eq!(warning.object.as_deref().map(|name| name.contains("odd")), Some(true), "{}", warning);
            prop_assert_eq!(warning.line, odd_line, "{}", warning);
            prop_assert!(!warning.to_string().contains('\n'), "{}", warning);
        }
    }

    #[test]
    fn any_text_is_read_without_a_panic(text in "([ \\-:\\[\\]{}\"'&*!|>%@#,a-c0-9\n\t]|- |: |---\n|<<: )*") {
        drop(read_text("any.yaml", text.as_bytes(), &Options::default()));
    }
}
