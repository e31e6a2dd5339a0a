//! `TopologyMap` objects that are missing, or that another program created.

use super::super::map_keys::PAUSE;
use super::*;

/// A `TopologyMap` of another program, with one Node and one label.
fn foreign(name: &str) -> Value {
    let entry = json!({ "v": ["x"], "ips": [], "podCIDRs": [], "cpuMilli": 0, "ready": true });
    json!({
        "metadata": { "name": name, "resourceVersion": "1" },
        "spec": { "shard": 0, "keys": ["example.com/foreign"], "nodes": { "n1": entry } },
    })
}

/// A state with so many Nodes, and no shards.
fn with_nodes(count: usize) -> State {
    let mut state = State::default();
    for number in 0..count {
        state.apply(Collection::Nodes, node(&format!("n{number}"), "a", true));
    }
    state
}

fn written(writes: &[Write]) -> Vec<&str> {
    let names = writes.iter().map(|write| &*write.name.name);
    names.collect()
}

fn nodes_of<'s>(state: &'s State, shard: &str) -> Vec<&'s String> {
    let key = (Collection::Maps, ObjectName::new("", shard));
    let nodes = state.observed.objects[&key]["spec"]["nodes"].as_object();
    nodes.unwrap().keys().collect()
}

#[test]
fn a_map_with_a_foreign_name_is_ignored() {
    for name in ["foreign", "shard-00", "shard-", "shard--1", "shard-10000"] {
        let mut state = with_nodes(2);
        state.apply(Collection::Maps, foreign(name));
        assert_eq!(written(&settle(&mut state, NOW)), ["shard-0"], "{name}");
        assert_eq!(nodes_of(&state, "shard-0"), ["n0", "n1"], "{name}");
        let key = (Collection::Maps, ObjectName::new("", "shard-0"));
        let keys = &state.observed.objects[&key]["spec"]["keys"];
        assert_eq!(keys, &json!(crd::REQUIRED_KEYS), "{name}");
    }
}

#[test]
fn maps_with_foreign_names_do_not_lengthen_the_pause_of_labels() {
    let mut state = with_nodes(1);
    state.listed(Collection::Services);
    for number in 0..5 {
        state.apply(Collection::Maps, foreign(&format!("foreign-{number}")));
    }
    settle(&mut state, NOW);
    let uses = |namespace: &str, label: &str| {
        let keys = format!("{label},*");
        let annotations = json!({ "topology.ipvs-topo.io/keys": keys });
        json!({ "metadata": { "namespace": namespace, "name": "cart", "annotations": annotations } })
    };
    state.apply(Collection::Services, uses("a", "pool"));
    assert_eq!(settle(&mut state, NOW).len(), 1);
    state.apply(Collection::Services, uses("b", "example.com/row"));
    assert_eq!(settle(&mut state, NOW + PAUSE - 1).len(), 0);
    assert_eq!(settle(&mut state, NOW + PAUSE).len(), 1);
}

#[test]
fn a_missing_shard_in_the_middle_is_written_again_with_its_nodes_only() {
    let mut state = with_nodes(2 * crd::NODES_PER_SHARD);
    assert_eq!(written(&settle(&mut state, NOW)), ["shard-0", "shard-1"]);
    // Their names come before all others.
    for number in 0..crd::NODES_PER_SHARD {
        state.apply(Collection::Nodes, node(&format!("a{number}"), "a", true));
    }
    assert_eq!(written(&settle(&mut state, NOW)), ["shard-2"]);
    let before = state.observed.objects.clone();
    state.delete(Collection::Maps, &ObjectName::new("", "shard-1"));
    assert_eq!(written(&settle(&mut state, NOW)), ["shard-1"]);
    assert_eq!(state.observed.objects, before);
}

#[test]
fn a_missing_shard_is_not_written_without_nodes() {
    let mut state = with_nodes(2 * crd::NODES_PER_SHARD);
    settle(&mut state, NOW);
    for number in 0..crd::NODES_PER_SHARD {
        let gone = nodes_of(&state, "shard-0")[number].clone();
        state.delete(Collection::Nodes, &ObjectName::new("", gone));
    }
    state.delete(Collection::Maps, &ObjectName::new("", "shard-0"));
    assert_eq!(settle(&mut state, NOW), []);
    // The next Nodes fill it.
    state.apply(Collection::Nodes, node("new", "a", true));
    assert_eq!(written(&settle(&mut state, NOW)), ["shard-0"]);
    assert_eq!(nodes_of(&state, "shard-0"), ["new"]);
}

#[test]
fn no_shard_is_created_for_nodes_that_the_api_server_would_refuse() {
    let mut state = State::default();
    let info = NodeInfo {
        labels: [("topology.kubernetes.io/zone".into(), "not a value".into())]
            .into_iter()
            .collect(),
        ..NodeInfo::default()
    };
    state.observed.nodes.insert("invalid".to_owned(), info);
    assert_eq!(settle(&mut state, NOW), []);
    assert!(state.left_out().contains_key("invalid"));
}
