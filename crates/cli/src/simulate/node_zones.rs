//! The Nodes with their zones, by number.

use std::collections::BTreeSet;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use topology_core::model::Endpoint;
use topology_core::policy::ZONE;
use topology_core::snapshot::Snapshot;

#[derive(Debug)]
pub(crate) struct NodeZones {
    /// By name; an empty one is for Nodes and endpoints without a zone.
    pub(crate) zones: Vec<Arc<str>>,
    /// By name.
    pub(crate) nodes: Vec<NodeZone>,
    zone_numbers: FxHashMap<Arc<str>, usize>,
    node_numbers: FxHashMap<Arc<str>, usize>,
}

#[derive(Debug)]
pub(crate) struct NodeZone {
    pub(crate) name: Arc<str>,
    pub(crate) zone: usize,
}

impl NodeZones {
    /// Numbers the Nodes and zones of `snapshot`.
    pub(crate) fn of(snapshot: &Snapshot) -> Self {
        let zones: Vec<Arc<str>> = zones(snapshot).into_iter().collect();
        let zone_numbers = numbers(zones.iter());
        let mut names: Vec<Arc<str>> = snapshot.nodes().map(|node| node.name.clone()).collect();
        names.sort_unstable();
        let node_numbers = numbers(names.iter());
        let place = |name: Arc<str>| NodeZone {
            zone: zone_numbers
                .get(&*zone_of(snapshot, &name))
                .copied()
                .unwrap_or_default(),
            name,
        };
        let nodes = names.into_iter().map(place).collect();
        Self {
            zones,
            nodes,
            zone_numbers,
            node_numbers,
        }
    }

    /// The number of a zone; an unknown zone gets the first number, which always exists.
    pub(crate) fn zone(&self, name: Option<&str>) -> usize {
        let number = self.zone_numbers.get(name.unwrap_or_default());
        number.copied().unwrap_or_default()
    }

    pub(crate) fn node(&self, name: &str) -> Option<usize> {
        self.node_numbers.get(name).copied()
    }
}

/// The zone label of a Node; empty if it has none.
pub(crate) fn zone_of(snapshot: &Snapshot, node: &str) -> Arc<str> {
    let label = snapshot.node(node).and_then(|node| node.labels.get(ZONE));
    label.cloned().unwrap_or_default()
}

/// The zones of Nodes, and of endpoints whose slices name one.
fn zones(snapshot: &Snapshot) -> BTreeSet<Arc<str>> {
    let of_nodes = snapshot.nodes().map(|node| zone_of(snapshot, &node.name));
    let slices = snapshot
        .services()
        .flat_map(|service| snapshot.slices(&service.name));
    let of_endpoints = slices
        .flat_map(|slice| &slice.endpoints)
        .map(|endpoint| zone_of_endpoint(snapshot, endpoint));
    let mut zones: BTreeSet<Arc<str>> = of_nodes.chain(of_endpoints).collect();
    if zones.is_empty() {
        zones.insert(Arc::default());
    }
    zones
}

/// The zone of an endpoint: its Node's, otherwise the slice's; empty without both.
pub(crate) fn zone_of_endpoint(snapshot: &Snapshot, endpoint: &Endpoint) -> Arc<str> {
    let node = endpoint.node.as_deref().map(|node| zone_of(snapshot, node));
    let node = node.filter(|zone| !zone.is_empty());
    node.or_else(|| endpoint.zone.clone()).unwrap_or_default()
}

fn numbers(names: std::slice::Iter<'_, Arc<str>>) -> FxHashMap<Arc<str>, usize> {
    names
        .enumerate()
        .map(|(number, name)| (name.clone(), number))
        .collect()
}
