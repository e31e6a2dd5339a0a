//! Describes `PodLocator`: the Node of one Pod, and the labels of the Node.

use super::map::MAX_KEYS;
use super::property::{
    IP_ADDRESS, LABEL_VALUE, Need, OBJECT_NAME, Object, PrinterColumn, Property, Resource, Shape,
};
use super::status::{AGE, column, required};

/// The limit of addresses in one `PodLocator`.
pub const MAX_LOCATOR_ADDRESSES: usize = 16;

pub(crate) const LOCATOR: Resource = Resource {
    kind: "PodLocator",
    plural: "podlocators",
    short: "ploc",
    namespaced: true,
    noun: "locator",
    about: "The location of the Pod of the same name, for programs that need the labels of its Node and should not watch Pods and Nodes. With --pod-locator-namespaces the controller writes one for each Pod of the selected namespaces, except Pods on the host network. It is deleted with its Pod.",
    spec: Object {
        parts: &[SPEC],
        rules: &[],
        atomic: false,
    },
    status: Object::NOTHING,
    status_by: "",
    columns: &[
        column("Node", ".spec.nodeName", "The Node of the Pod."),
        PrinterColumn {
            wide: true,
            ..column("Addresses", ".spec.addresses", "The addresses of the Pod.")
        },
        AGE,
    ],
};

const SPEC: &[Property] = &[
    required(
        "nodeName",
        Shape::Text(OBJECT_NAME),
        "The Node on which the Pod is.",
    ),
    Property {
        name: "addresses",
        shape: Shape::List {
            of: &Shape::Text(IP_ADDRESS),
            least: 0,
            most: MAX_LOCATOR_ADDRESSES,
            set: false,
        },
        need: Need::EmptyList,
        about: "The addresses of the Pod, of each family.",
    },
    Property {
        name: "nodeLabels",
        shape: Shape::Map {
            of: &Shape::Text(LABEL_VALUE),
            most: MAX_KEYS,
            keys: "label key",
        },
        need: Need::EmptyMap,
        about: "The labels of the Node that a TopologyMap has, too: zone, region, capacity, and those that policies, drains and annotations of Services use.",
    },
];
