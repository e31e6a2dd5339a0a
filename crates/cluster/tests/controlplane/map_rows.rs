//! `TopologyMap`, row by row: the API server and the agent accept and refuse the same maps.

use std::collections::BTreeMap;
use std::time::Duration;

use cluster::api::MapGap;
use serde_json::{Value, json};

use crate::fake::{Fake, Followed, MAPS};
use crate::kubectl::{Namespace, installed};
use crate::rows::{Row, api_refuses};

const THE_MAP: &str = "topologymaps.topology.ipvs-topo.io";
const ZONE: &str = "topology.kubernetes.io/zone";

/// The name of a row, and the spec of its map.
type Spec = (&'static str, Value);

fn many(count: usize, text: &str) -> Value {
    vec![text; count].into()
}

fn keys(count: usize) -> Value {
    let keys = (0..count).map(|number| format!("example.com/k{number}"));
    keys.collect::<Vec<_>>().into()
}

fn nodes(count: usize) -> Value {
    let nodes = (0..count).map(|number| (format!("n{number}"), json!({})));
    nodes.collect()
}

fn with(field: &str, value: impl Into<Value>) -> Value {
    let mut spec = json!({"shard": 0, "nodes": {"n1": {}}});
    spec["nodes"]["n1"][field] = value.into();
    spec
}

fn with_values(keys: &Value, values: &Value) -> Value {
    json!({"shard": 0, "keys": keys, "nodes": {"n1": {"v": values}}})
}

fn long_key(length: usize) -> Value {
    let (prefix, name) = ("a".repeat(length - 64), "b".repeat(63));
    json!([format!("{prefix}/{name}")])
}

/// Valid rows, up to every limit.
fn valid() -> Vec<Spec> {
    let whole = json!({
        "shard": 1, "keys": [ZONE, "pool"],
        "nodes": {
            "n1": {
                "v": ["a", ""], "emptyLabels": ["pool"], "ips": ["192.168.7.1", "fd00::7:1"],
                "podCIDRs": ["10.7.1.0/24", "fd00:7:1::/64"], "cpuMilli": 4000, "ready": true,
            },
            "n2": {"v": ["", "web"]},
        },
    });
    vec![
        ("whole", whole),
        ("shard-alone", json!({"shard": 0})),
        ("last-shard", json!({"shard": 9999})),
        ("nulls", json!({"shard": 0, "keys": null, "nodes": null})),
        ("node-of-nothing", json!({"shard": 0, "nodes": nodes(1)})),
        ("all-nodes", json!({"shard": 0, "nodes": nodes(500)})),
        ("all-keys", with_values(&keys(32), &many(32, "x"))),
        (
            "long-key",
            json!({"shard": 0, "keys": long_key(253), "nodes": {}}),
        ),
        (
            "long-value",
            with_values(&json!([ZONE]), &many(1, &"x".repeat(63))),
        ),
        ("all-empty-labels", with("emptyLabels", keys(32))),
        ("all-addresses", with("ips", many(16, "10.0.0.1"))),
        ("no-ranges", with("podCIDRs", json!([]))),
        ("null-ranges", with("podCIDRs", Value::Null)),
        (
            "longest-range",
            with("podCIDRs", many(2, &format!("{}/128", "1".repeat(45)))),
        ),
        (
            "range-of-no-family",
            with("podCIDRs", many(1, "10.0.0.0/999")),
        ),
        ("all-cpu", with("cpuMilli", 1_000_000_000)),
        ("no-cpu", with("cpuMilli", 0)),
    ]
}

/// Rows that break the CEL rule of the kind.
fn of_other_length() -> Vec<Spec> {
    let zone = json!([ZONE]);
    let second = json!({
        "shard": 0, "keys": [ZONE], "nodes": {"n1": {"v": ["a"]}, "n2": {"v": ["a", "b"]}},
    });
    vec![
        ("too-few-values", with_values(&keys(2), &many(1, "a"))),
        ("too-many-values", with_values(&zone, &many(2, "a"))),
        (
            "no-values",
            json!({"shard": 0, "keys": [ZONE], "nodes": nodes(1)}),
        ),
        ("values-without-keys", with("v", many(1, "a"))),
        ("the-second-of-two", second),
    ]
}

/// Rows with one fault outside of the Nodes.
fn invalid() -> Vec<Spec> {
    let keys_are = |keys: Value| json!({"shard": 0, "keys": keys});
    vec![
        ("no-spec", Value::Null),
        ("spec-of-text", json!("nothing")),
        ("no-shard", json!({"keys": []})),
        ("shard-below", json!({"shard": -1})),
        ("shard-above", json!({"shard": 10_000})),
        ("shard-in-parts", json!({"shard": 1.5})),
        ("shard-in-quotes", json!({"shard": "0"})),
        ("keys-of-text", keys_are(json!(ZONE))),
        ("too-many-keys", keys_are(keys(33))),
        ("empty-key", keys_are(json!([""]))),
        ("null-key", keys_are(json!([null]))),
        ("star-key", keys_are(json!(["*"]))),
        ("key-with-a-space", keys_are(json!(["a b"]))),
        ("key-in-capitals", keys_are(json!(["Example.com/rack"]))),
        ("too-long-key", keys_are(long_key(254))),
        ("list-of-nodes", json!({"shard": 0, "nodes": ["n1"]})),
        ("too-many-nodes", json!({"shard": 0, "nodes": nodes(501)})),
        ("node-of-text", json!({"shard": 0, "nodes": {"n1": "a"}})),
    ]
}

/// Rows with one fault in a Node.
fn invalid_nodes() -> Vec<Spec> {
    let zone = json!([ZONE]);
    vec![
        ("values-of-text", with("v", "a")),
        ("value-with-a-space", with_values(&zone, &many(1, "a b"))),
        ("null-value", with_values(&zone, &json!([null]))),
        (
            "too-long-value",
            with_values(&zone, &many(1, &"x".repeat(64))),
        ),
        ("too-many-addresses", with("ips", many(17, "10.0.0.1"))),
        ("address-with-a-length", with("ips", many(1, "10.0.0.0/8"))),
        ("address-in-capitals", with("ips", many(1, "FD00::1"))),
        ("empty-address", with("ips", many(1, ""))),
        ("too-many-ranges", with("podCIDRs", many(3, "10.0.0.0/8"))),
        (
            "range-without-length",
            with("podCIDRs", many(1, "10.0.0.1")),
        ),
        ("range-in-capitals", with("podCIDRs", many(1, "FD00::/64"))),
        (
            "too-long-range",
            with("podCIDRs", many(1, &format!("{}/64", "1".repeat(47)))),
        ),
        ("too-many-empty-labels", with("emptyLabels", keys(33))),
        (
            "empty-label-with-a-space",
            with("emptyLabels", json!(["a b"])),
        ),
        ("too-short-address", with("ips", many(1, "1"))),
        ("too-long-address", with("ips", many(1, &"1".repeat(46)))),
        ("cpu-below", with("cpuMilli", -1)),
        ("cpu-above", with("cpuMilli", 1_000_000_001)),
        ("cpu-in-parts", with("cpuMilli", 0.5)),
        ("cpu-in-quotes", with("cpuMilli", "4000")),
        ("ready-in-quotes", with("ready", "true")),
        ("ready-as-a-number", with("ready", 1)),
    ]
}

fn map(name: &str, spec: &Value) -> Value {
    json!({
        "apiVersion": "topology.ipvs-topo.io/v1alpha1", "kind": "TopologyMap",
        "metadata": {"name": name}, "spec": spec,
    })
}

/// Whether an agent uses the map. The fake server accepts everything.
fn agent_accepts(name: &str, spec: &Value) -> bool {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .unwrap();
    let followed = runtime.block_on(async {
        let server = Fake::new();
        server.add(MAPS, map(name, spec));
        let mut followed = Followed::mapped("n1");
        let second = Duration::from_secs(1);
        server.follow_with(&mut followed, second, |_, _| {}).await;
        followed
    });
    let state = followed.state(THE_MAP);
    assert_eq!(state.objects, 1, "{name} was not read");
    match state.map_gap {
        Some(MapGap::Unusable(_)) => false,
        // The map is valid, although it does not have all that the agent needs.
        None | Some(MapGap::Label { .. } | MapGap::OwnNode(_)) => true,
        other => panic!("{name}: {other:?}"),
    }
}

/// Fails unless the API server and the agent accept all rows (`accepted`), or none; returns the
/// refusals.
#[track_caller]
fn check(specs: &[Spec], accepted: bool) -> BTreeMap<String, String> {
    installed();
    let namespace = Namespace::new();
    let row = |(name, spec): &Spec| Row {
        name: (*name).to_owned(),
        text: map(name, spec).to_string(),
    };
    let rows: Vec<Row> = specs.iter().map(row).collect();
    let refused = api_refuses(&rows, &namespace.0);
    let mut differ = Vec::new();
    for (name, spec) in specs {
        let refusal = refused.get(*name);
        let agent = agent_accepts(name, spec);
        if (agent, refusal.is_none()) != (accepted, accepted) {
            differ.push(format!(
                "{name}: the agent {agent}, the API server {refusal:?}"
            ));
        }
    }
    assert!(differ.is_empty(), "{}", differ.join("\n\n"));
    refused
}

#[test]
fn valid_maps_are_accepted_by_both() {
    check(&valid(), true);
}

#[test]
fn maps_with_one_fault_are_refused_by_both() {
    check(&[invalid(), invalid_nodes()].concat(), false);
}

/// kubectl asks the API server to refuse unknown fields, which may be errors. The fields that an agent receives are those of
/// a later controller.
#[test]
fn unknown_fields_are_refused_by_the_api_server_and_ignored_by_the_agent() {
    installed();
    let namespace = Namespace::new();
    let specs = [
        ("unknown-field", json!({"shard": 0, "node": {}})),
        ("unknown-in-a-node", with("cpu", 4)),
    ];
    let rows = specs.each_ref().map(|(name, spec)| Row {
        name: (*name).to_owned(),
        text: map(name, spec).to_string(),
    });
    let refused = api_refuses(&rows, &namespace.0);
    for (name, spec) in &specs {
        assert!(refused[*name].contains("unknown field"), "{refused:?}");
        assert!(agent_accepts(name, spec), "{name}");
    }
}

#[test]
fn maps_with_more_or_fewer_values_than_keys_are_refused_by_both() {
    let refused = check(&of_other_length(), false);
    for (name, refusal) in refused {
        let text = "a Node has more or fewer values than there are keys";
        assert!(refusal.contains(text), "{name}: {refusal}");
    }
}
