//! `TopologyMap`: which Node is in which shard, and what each shard tells.
//!
//! A Node stays in the shard that it is in, so that a Node that comes or goes changes one shard and no other.

use std::collections::{BTreeMap, BTreeSet};

use crd::{
    GROUP, KEYS_ALWAYS_TOLD, MAX_KEYS, MAX_NODE_ADDRESSES, MAX_NODE_CPU_MILLI, NODES_PER_SHARD,
    VERSION, map_node_fault,
};
use serde_json::{Map, Value, json};

use super::collection::Collection;
use super::nodes::Place;
use super::observed::Observed;
use super::validate::ValidatedDrain;
use super::value::{list, put, text};
use super::write::{Name, Write, WriteKind};

/// What is to be written of the map.
#[derive(Debug, Default)]
pub(super) struct Plan {
    /// The shards that are not as they should be.
    pub(super) writes: Vec<Write>,
    /// Nodes that the API server would not take, and why: each would block the others of its shard.
    pub(super) left_out: BTreeMap<String, String>,
}

/// Compares the shards with what they should be.
pub(super) fn plan(state: &Observed) -> Plan {
    let keys = keys(state);
    let mut plan = Plan::default();
    for (number, nodes) in shards(state).iter().enumerate() {
        let write = write(state, number, &keys, nodes, &mut plan.left_out);
        plan.writes.extend(write);
    }
    plan
}

/// The labels to tell: those that anything looks at. Where there are more than fit, those of administrators come first,
/// and then each namespace gives one after the other: a namespace that names many only pushes out its own.
fn keys(state: &Observed) -> Vec<String> {
    let mut sure: BTreeSet<String> = state.extra_keys.clone();
    sure.extend(used(state, Collection::ClusterPolicies).map(|(_, key)| key));
    sure.extend(state.drains.values().filter_map(ValidatedDrain::label));
    let mut namespaces: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (namespace, key) in used(state, Collection::Policies) {
        namespaces.entry(namespace).or_default().insert(key);
    }
    let most = MAX_KEYS - KEYS_ALWAYS_TOLD.len();
    let mut chosen: BTreeSet<String> = sure.into_iter().filter(is_special).take(most).collect();
    while chosen.len() < most && !namespaces.is_empty() {
        for keys in namespaces.values_mut() {
            // One that is told already costs the namespace nothing.
            let mut left = std::iter::from_fn(|| keys.pop_first());
            let next = left.find(|key| is_special(key) && !chosen.contains(key));
            if chosen.len() < most {
                chosen.extend(next);
            }
        }
        namespaces.retain(|_, keys| !keys.is_empty());
    }
    let always = KEYS_ALWAYS_TOLD.map(str::to_owned).into_iter();
    always.chain(chosen).collect()
}

fn is_special(key: &String) -> bool {
    !KEYS_ALWAYS_TOLD.contains(&&**key)
}

/// The labels that the policies of a collection use, each with the namespace of the policy.
fn used(state: &Observed, collection: Collection) -> impl Iterator<Item = (String, String)> {
    let judged = state.policies.iter();
    let judged = judged.filter(move |((of, _), _)| *of == collection);
    judged.flat_map(|((_, (namespace, _)), judged)| {
        let keys = judged.labels.iter();
        keys.map(|key| (namespace.clone(), key.clone()))
    })
}

/// The Nodes of each shard.
fn shards(state: &Observed) -> Vec<BTreeSet<&str>> {
    let mut shards: Vec<BTreeSet<&str>> = Vec::new();
    let mut placed = BTreeSet::new();
    for number in 0..state.of(Collection::Maps).count() {
        let object = state.objects.get(&(Collection::Maps, name(number)));
        let nodes = object.and_then(|object| object.pointer("/spec/nodes")?.as_object());
        let mut shard = BTreeSet::new();
        for node in nodes.into_iter().flat_map(Map::keys) {
            if shard.len() < NODES_PER_SHARD
                && state.nodes.contains_key(node)
                && placed.insert(&**node)
            {
                shard.insert(&**node);
            }
        }
        shards.push(shard);
    }
    let mut at = 0;
    for node in state.nodes.keys().filter(|node| !placed.contains(&***node)) {
        while shards
            .get(at)
            .is_some_and(|shard| shard.len() >= NODES_PER_SHARD)
        {
            at += 1;
        }
        match shards.get_mut(at) {
            Some(shard) => drop(shard.insert(node)),
            None => shards.push(BTreeSet::from([&**node])),
        }
    }
    shards
}

fn name(number: usize) -> Name {
    (String::new(), format!("shard-{number}"))
}

fn write(
    state: &Observed,
    number: usize,
    keys: &[String],
    nodes: &BTreeSet<&str>,
    left_out: &mut BTreeMap<String, String>,
) -> Option<Write> {
    let name = name(number);
    let before = state.objects.get(&(Collection::Maps, name.clone()));
    let taken = before.and_then(|before| before.pointer("/spec/nodes"));
    let mut entries: BTreeMap<&str, Value> = BTreeMap::new();
    for node in nodes {
        let Some(place) = state.nodes.get(*node) else {
            continue;
        };
        let entry = entry(place, keys);
        let is_taken = taken.and_then(|taken| taken.get(*node)) == Some(&entry);
        // What the API server has taken before is not judged again.
        let fault = if is_taken {
            None
        } else {
            map_node_fault(&entry)
        };
        match fault {
            Some(fault) => drop(left_out.insert((*node).to_owned(), fault)),
            None => drop(entries.insert(node, entry)),
        }
    }
    let spec = json!({ "shard": number, "keys": keys, "nodes": entries });
    if before.and_then(|before| before.get("spec")) == Some(&spec) {
        return None;
    }
    let mut metadata = json!({ "name": name.1 });
    let kind = before.map_or(WriteKind::Create, |before| {
        let version = text(before, "/metadata/resourceVersion");
        put(&mut metadata, "resourceVersion", version);
        WriteKind::Replace
    });
    let body = json!({
        "apiVersion": format!("{GROUP}/{VERSION}"),
        "kind": Collection::Maps.kind(),
        "metadata": metadata,
        "spec": spec,
    });
    let was_told = |key: &String| {
        let before = before.map(|before| list(before, "/spec/keys"));
        before.is_some_and(|told| told.iter().any(|one| one == key))
    };
    Some(Write {
        collection: Collection::Maps,
        name,
        kind,
        body,
        is_transition: !keys.iter().all(was_told),
    })
}

fn entry(place: &Place, keys: &[String]) -> Value {
    let value = |key: &String| place.labels.get(key).map_or("", |value| &**value);
    let values: Vec<&str> = keys.iter().map(value).collect();
    let addresses = place.addresses.iter().take(MAX_NODE_ADDRESSES);
    let addresses: Vec<String> = addresses.map(ToString::to_string).collect();
    // A kubelet may write any number; what is beyond is as good as the most.
    let cpu_milli = place.cpu_milli.min(MAX_NODE_CPU_MILLI);
    json!({ "v": values, "ips": addresses, "cpuMilli": cpu_milli, "ready": place.ready })
}
