//! Converts `TopologyMap`: the facts about a group of Nodes that other Nodes need.

use std::collections::BTreeMap;
use std::sync::Arc;

use topology_core::model::{Labels, Node};

use super::address;
use super::custom::{names, number, sound_part};
use super::node::pod_cidrs;
use super::report::Report;
use crate::intern::Interner;
use crd::MAP;
use object_tree::Field;

/// The content of one map.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct NodeMap {
    /// The labels that the map contains for each Node.
    pub(crate) keys: Vec<Arc<str>>,
    /// By name. `leaving` is always false: the map does not contain it, because only the agent on
    /// that Node uses it.
    pub(crate) nodes: BTreeMap<Arc<str>, Node>,
}

/// Returns `None` if the map is not valid.
pub(crate) fn convert(
    root: &Field<'_>,
    interner: &mut Interner,
    report: &mut Report,
) -> Option<NodeMap> {
    let whole = sound_part(root, &MAP, report)?;
    let whole = Field::root(&whole);
    let spec = whole.get("spec");
    let keys = names(&spec.get("keys"), interner, report);
    let listed = spec.get("nodes");
    let mut nodes = BTreeMap::new();
    for name in listed.keys() {
        let name = interner.text(name);
        let node = node(&listed.get(&name), &name, &keys, interner, report)?;
        nodes.insert(name, node);
    }
    Some(NodeMap { keys, nodes })
}

fn node(
    field: &Field<'_>,
    name: &Arc<str>,
    keys: &[Arc<str>],
    interner: &mut Interner,
    report: &mut Report,
) -> Option<Node> {
    let values = names(&field.get("v"), interner, report);
    let empty = names(&field.get("emptyLabels"), interner, report);
    let labels = keys.iter().cloned().zip(values);
    let listed = field.get("ips");
    let mut addresses = Vec::new();
    for address in listed.items(report) {
        addresses.extend(address::parse(&address, report));
    }
    Some(Node {
        labels: labels
            .filter(|(key, value)| !value.is_empty() || empty.contains(key))
            .collect::<Labels>(),
        addresses,
        pod_cidrs: pod_cidrs(field, report),
        cpu_milli: number(&field.get("cpuMilli"), report)?,
        ready: field.get("ready").boolean(report)?,
        name: Arc::clone(name),
        leaving: false,
    })
}
