//! Where addresses are: an index that follows changes agrees with a search of all objects.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use proptest::prelude::*;
use proptest::sample::subsequence;
use topology_core::address_index::{AddressIndex, AddressSource};
use topology_core::model::{IpNetwork, Node, NodePods, ObjectName, parse_range};
use topology_core::snapshot::Snapshot;

use crate::world::{self, at};

const NODES: [&str; 4] = ["n1", "n2", "n3", "n4"];
const SERVICES: [&str; 2] = ["cart", "search"];
const ADDRESSES: [&str; 6] = [
    "10.244.1.1",
    "10.244.1.200",
    "10.244.2.1",
    "192.0.2.1",
    "fd00:1::1",
    "fd00:2::1",
];
/// Some contain others.
const RANGES: [&str; 7] = [
    "0.0.0.0/0",
    "10.244.0.0/16",
    "10.244.1.0/24",
    "10.244.1.128/25",
    "10.244.1.200/32",
    "fd00:1::/64",
    "fd00::/16",
];

#[derive(Debug, Clone)]
enum Change {
    SetNode(Node),
    RemoveNode(&'static str),
    /// The addresses of the Pods on a Node.
    SetPods(&'static str, Vec<IpAddr>),
    RemovePods(&'static str),
    /// The endpoints of a Service: addresses, and their Nodes.
    SetEndpoints(&'static str, Vec<(IpAddr, Option<&'static str>)>),
    SetService(&'static str),
    RemoveService(&'static str),
}

fn name() -> impl Strategy<Value = &'static str> {
    prop::sample::select(NODES.to_vec())
}

fn service() -> impl Strategy<Value = &'static str> {
    prop::sample::select(SERVICES.to_vec())
}

fn addresses() -> impl Strategy<Value = Vec<IpAddr>> {
    subsequence(ADDRESSES.map(|text| text.parse().unwrap()).to_vec(), 0..=3)
}

fn change() -> impl Strategy<Value = Change> {
    let ranges = subsequence(RANGES.map(|text| parse_range(text).unwrap()).to_vec(), 0..3);
    let node =
        (name(), addresses(), ranges, 0..2_u8).prop_map(|(name, addresses, ranges, zone)| {
            Change::SetNode(Node {
                addresses,
                pod_cidrs: ranges,
                ..world::node(name, &[(world::ZONE, ["a", "b"][usize::from(zone)])])
            })
        });
    let endpoints = (
        service(),
        addresses(),
        prop::collection::vec(prop::option::of(name()), 3),
    );
    let endpoints = endpoints.prop_map(|(service, addresses, nodes)| {
        Change::SetEndpoints(service, addresses.into_iter().zip(nodes).collect())
    });
    prop_oneof![
        4 => node,
        2 => name().prop_map(Change::RemoveNode),
        3 => (name(), addresses()).prop_map(|(node, addresses)| Change::SetPods(node, addresses)),
        1 => name().prop_map(Change::RemovePods),
        3 => endpoints,
        2 => service().prop_map(Change::SetService),
        1 => service().prop_map(Change::RemoveService),
    ]
}

/// The objects as lists.
#[derive(Debug, Default)]
struct Objects {
    nodes: BTreeMap<&'static str, Node>,
    pods: BTreeMap<&'static str, Vec<IpAddr>>,
    services: BTreeSet<&'static str>,
    endpoints: BTreeMap<&'static str, Vec<(IpAddr, Option<&'static str>)>>,
}

/// A location as text: the Node, its zone, the Pod, and how it was found.
type Found = (String, Option<String>, Option<String>, String);

impl Objects {
    fn apply(&mut self, change: Change) {
        match change {
            Change::SetNode(node) => {
                let name = NODES.into_iter().find(|name| **name == *node.name);
                self.nodes.insert(name.unwrap(), node);
            }
            Change::RemoveNode(name) => drop(self.nodes.remove(name)),
            Change::SetPods(node, addresses) => drop(self.pods.insert(node, addresses)),
            Change::RemovePods(node) => drop(self.pods.remove(node)),
            Change::SetEndpoints(service, endpoints) => {
                self.endpoints.insert(service, endpoints);
            }
            Change::SetService(name) => drop(self.services.insert(name)),
            Change::RemoveService(name) => drop(self.services.remove(name)),
        }
    }

    fn zone(&self, node: &str) -> Option<String> {
        let labels = &self.nodes.get(node)?.labels;
        Some(labels.get(world::ZONE)?.to_string())
    }

    /// The first Node whose Pods have the address.
    fn node_of_pod(&self, address: IpAddr) -> Option<&'static str> {
        let mut nodes = self.pods.iter();
        let (node, _) = nodes.find(|(_, addresses)| addresses.contains(&address))?;
        Some(node)
    }

    fn found(&self, node: &str, pod: Option<String>, source: String) -> Found {
        (node.to_owned(), self.zone(node), pod, source)
    }

    fn locate(&self, address: IpAddr) -> Option<Found> {
        let on = self.node_of_pod(address);
        let mut ranges: Vec<(IpNetwork, &str)> = Vec::new();
        for (name, node) in &self.nodes {
            let around = node
                .pod_cidrs
                .iter()
                .filter(|range| range.contains(address));
            ranges.extend(around.map(|range| (*range, *name)));
        }
        // Later names lose against earlier ones with the same range.
        let smallest = ranges.iter().rev().max_by_key(|(range, _)| range.prefix());
        if let Some((range, node)) = smallest {
            let pod = on.filter(|on| on == node).map(pod_of);
            return Some(self.found(node, pod, format!("range {range}")));
        }
        if let Some(on) = on {
            return Some(self.found(on, Some(pod_of(on)), "pod map".to_owned()));
        }
        for (name, node) in &self.nodes {
            if node.addresses.contains(&address) {
                return Some(self.found(name, None, "address".to_owned()));
            }
        }
        for service in &self.services {
            let endpoints = self.endpoints.get(service).into_iter().flatten();
            let mut on_nodes = endpoints.filter(|(endpoint, _)| *endpoint == address);
            if let Some((_, Some(node))) = on_nodes.next() {
                return Some(self.found(node, None, format!("endpoint of t/{service}")));
            }
        }
        None
    }
}

/// Each Node has one Pod.
fn pod_of(node: &str) -> String {
    format!("t/pod-of-{node}")
}

fn apply(snapshot: &mut Snapshot, change: Change) {
    match change {
        Change::SetNode(node) => snapshot.set_node(node),
        Change::RemoveNode(name) => snapshot.remove_node(name),
        Change::SetPods(node, addresses) => {
            let pod = ObjectName::parse(&pod_of(node)).unwrap();
            snapshot.set_node_pods(NodePods {
                node: node.into(),
                pods: addresses
                    .into_iter()
                    .map(|address| (address, pod.clone()))
                    .collect(),
            });
        }
        Change::RemovePods(node) => snapshot.remove_node_pods(node),
        Change::SetEndpoints(service, endpoints) => {
            let endpoints = endpoints.into_iter().map(|(address, node)| match node {
                Some(node) => at(address).on(node),
                None => at(address),
            });
            snapshot.set_slice(world::slice(&format!("{service}-1"), service, endpoints));
        }
        Change::SetService(name) => snapshot.set_service(world::service(name, "10.96.0.10")),
        Change::RemoveService(name) => snapshot.remove_service(&ObjectName::new("t", name)),
    }
}

fn found(index: &AddressIndex, snapshot: &Snapshot, address: IpAddr) -> Option<Found> {
    let location = index.locate(snapshot, address)?;
    let source = match location.source {
        AddressSource::PodRange(range) => format!("range {range}"),
        AddressSource::PodMap => "pod map".to_owned(),
        AddressSource::NodeAddress => "address".to_owned(),
        AddressSource::Endpoint(service) => format!("endpoint of {service}"),
    };
    let zone = location.labels.and_then(|labels| labels.get(world::ZONE));
    let zone = zone.map(ToString::to_string);
    let pod = location.pod.map(ToString::to_string);
    Some((location.node_name.to_string(), zone, pod, source))
}

proptest! {
    #[test]
    fn an_index_that_follows_changes_agrees_with_a_search(changes in prop::collection::vec(change(), 1..24)) {
        let (mut snapshot, mut index, mut objects) = (Snapshot::default(), AddressIndex::default(), Objects::default());
        for change in changes {
            apply(&mut snapshot, change.clone());
            objects.apply(change);
            for service in &snapshot.take_changes().services {
                index.update(&snapshot, service);
            }
            let new = AddressIndex::of(&snapshot);
            for address in ADDRESSES.map(|text| text.parse().unwrap()) {
                let expected = objects.locate(address);
                prop_assert_eq!(found(&index, &snapshot, address), expected.clone(), "{}", address);
                prop_assert_eq!(found(&new, &snapshot, address), expected, "{} in a new index", address);
            }
        }
    }
}

#[test]
fn a_relabelled_node_has_its_new_labels_at_once() {
    let mut snapshot = Snapshot::default();
    let range = parse_range("10.244.1.0/24").unwrap();
    for zone in ["a", "b"] {
        snapshot.set_node(Node {
            pod_cidrs: vec![range],
            ..world::node("n1", &[(world::ZONE, zone)])
        });
        let index = AddressIndex::of(&snapshot);
        let address = "10.244.1.1".parse().unwrap();
        let expected = (
            "n1".to_owned(),
            Some(zone.to_owned()),
            None,
            format!("range {range}"),
        );
        assert_eq!(found(&index, &snapshot, address), Some(expected));
    }
}
