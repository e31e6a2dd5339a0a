//! Plans the `TopologyMap` shards: the Nodes of each shard, and their data.
//!
//! A Node stays in its shard, so that a new or deleted Node changes one shard only. A shard is known by its name. The
//! controller ignores a `TopologyMap` with another name.

use std::collections::{BTreeMap, BTreeSet};

use crd::{
    MAX_NODE_ADDRESSES, MAX_NODE_CPU_MILLI, MAX_NODE_POD_CIDRS, MapNode, MapSpec, NODES_PER_SHARD,
    map_node_fault,
};
use serde_json::{Map, Value, json};
use topology_core::model::ObjectName;

use super::collection::Collection;
use super::nodes::NodeInfo;
use super::observed::Observed;
use super::value::{list, text};
use super::whole_object::write_whole;
use super::write::Write;

/// The highest number that the API server accepts in `spec.shard`.
const LAST_SHARD: usize = 9_999;

#[derive(Debug, Default)]
pub(super) struct MapPlan {
    pub(super) writes: Vec<Write>,
    /// Nodes that the API server would refuse, and why. They would block the write of their shard.
    pub(super) left_out: BTreeMap<String, String>,
}

/// Plans the shards with the labels `keys`.
pub(super) fn plan(state: &Observed, keys: &[String]) -> MapPlan {
    let mut plan = MapPlan::default();
    for (number, nodes) in &shards(state) {
        let write = write(state, *number, keys, nodes, &mut plan.left_out);
        plan.writes.extend(write);
    }
    plan
}

/// The shards that exist, by number. Numbers may be missing.
pub(super) fn existing(state: &Observed) -> BTreeMap<usize, &Value> {
    let maps = state.of(Collection::Maps);
    maps.filter_map(|(name, map)| Some((number(name)?, map)))
        .collect()
}

/// Assigns the Nodes to the shards that exist, and to new ones. A missing number is used again only for Nodes without a
/// shard.
fn shards(state: &Observed) -> BTreeMap<usize, BTreeSet<&str>> {
    let mut shards: BTreeMap<usize, BTreeSet<&str>> = BTreeMap::new();
    let mut placed = BTreeSet::new();
    for (number, map) in existing(state) {
        let nodes = map.pointer("/spec/nodes").and_then(Value::as_object);
        let mut shard = BTreeSet::new();
        for node in nodes.into_iter().flat_map(Map::keys) {
            if shard.len() < NODES_PER_SHARD
                && state.nodes.contains_key(node)
                && placed.insert(&**node)
            {
                shard.insert(&**node);
            }
        }
        shards.insert(number, shard);
    }
    let mut at = 0;
    for node in state.nodes.keys().filter(|node| !placed.contains(&***node)) {
        while shards
            .get(&at)
            .is_some_and(|shard| shard.len() >= NODES_PER_SHARD)
        {
            at += 1;
        }
        shards.entry(at).or_default().insert(node);
    }
    shards
}

fn name(number: usize) -> ObjectName {
    ObjectName::new("", format!("shard-{number}"))
}

/// The number of a shard; `None` for another name, such as `shard-01`.
fn number(of: &ObjectName) -> Option<usize> {
    let number = of.name.strip_prefix("shard-")?.parse().ok()?;
    (number <= LAST_SHARD && name(number) == *of).then_some(number)
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
    let accepted = before.and_then(|before| before.pointer("/spec/nodes"));
    let mut entries: BTreeMap<String, MapNode> = BTreeMap::new();
    for node in nodes {
        let Some(info) = state.nodes.get(*node) else {
            continue;
        };
        let entry = entry(info, keys);
        let is_accepted = accepted.and_then(|nodes| nodes.get(*node)) == Some(&json!(entry));
        // Entries that the API server has accepted need no check.
        let fault = if is_accepted {
            None
        } else {
            map_node_fault(&entry)
        };
        match fault {
            Some(fault) => drop(left_out.insert((*node).to_owned(), fault)),
            None => drop(entries.insert((*node).to_owned(), entry)),
        }
    }
    if before.is_none() && entries.is_empty() {
        return None;
    }
    let spec = json!(MapSpec {
        shard: number,
        keys: keys.to_vec(),
        nodes: entries,
    });
    if before.and_then(|before| before.get("spec")) == Some(&spec) {
        return None;
    }
    let version = before.map(|before| text(before, "/metadata/resourceVersion"));
    let was_in_map = |key: &String| {
        let keys = before.map(|before| list(before, "/spec/keys"));
        keys.is_some_and(|keys| keys.iter().any(|known| known == key))
    };
    Some(Write {
        is_transition: !keys.iter().all(was_in_map),
        ..write_whole(Collection::Maps, &name, spec, version)
    })
}

fn entry(info: &NodeInfo, keys: &[String]) -> MapNode {
    let label = |key: &String| info.labels.get(key).map(|value| &**value);
    let value = |key: &String| label(key).unwrap_or_default().to_owned();
    let empty = keys.iter().filter(|key| label(key) == Some(""));
    let addresses = info.addresses.iter().take(MAX_NODE_ADDRESSES);
    let pod_cidrs = info.pod_cidrs.iter().take(MAX_NODE_POD_CIDRS);
    MapNode {
        v: keys.iter().map(value).collect(),
        empty_labels: empty.cloned().collect(),
        ips: addresses.map(ToString::to_string).collect(),
        pod_cidrs: pod_cidrs.map(ToString::to_string).collect(),
        // A kubelet may report any number.
        cpu_milli: info.cpu_milli.min(MAX_NODE_CPU_MILLI),
        ready: info.ready,
    }
}
