//! Describes `TopologyMap`: what agents need from Nodes, in few objects that rarely change.

use super::check::check;
use super::object_status::MapNode;
use super::property::{
    FULL_LABEL_KEY, IP_ADDRESS, IP_RANGE, LABEL_VALUE, Need, Object, PrinterColumn, Property,
    Resource, Shape,
};
use super::rule::{Expr, Rule};
use super::status::{AGE, column};
use object_tree::{Field, Problems};
use safe_text::shorten;

/// The number of Nodes in one `TopologyMap`.
pub const NODES_PER_SHARD: usize = 500;
/// The limit of label keys.
pub const MAX_KEYS: usize = 32;

/// The limit of addresses of one Node.
pub const MAX_NODE_ADDRESSES: usize = 16;
/// The limit of pod ranges of one Node: Kubernetes permits one for each family.
pub const MAX_NODE_POD_CIDRS: usize = 2;
/// The limit of the CPU of one Node, in thousandths of a processor: a million processors.
pub const MAX_NODE_CPU_MILLI: u64 = 1_000_000_000;

/// Labels that every map has, whatever labels policies use. Agents do not use a map without them.
pub const REQUIRED_KEYS: [&str; 3] = [
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
    "topology.ipvs-topo.io/capacity",
];

pub const MAP: Resource = Resource {
    kind: "TopologyMap",
    plural: "topologymaps",
    short: "tmap",
    namespaced: false,
    noun: "map",
    about: "The location of Nodes: the values of a few labels, addresses, ranges of pods, CPU and readiness. The controller writes it only when one of these changes, so Node heartbeats cause no writes. With --node-source=map, agents and DNS servers watch this object and only their own Node; otherwise they watch all Nodes.",
    spec: Object {
        parts: &[SPEC],
        rules: &[RULES],
        atomic: false,
    },
    status: Object::NOTHING,
    status_by: "",
    columns: &[
        PrinterColumn {
            kind: "integer",
            ..column(
                "Shard",
                ".spec.shard",
                "The number of this part of the Nodes.",
            )
        },
        column("Keys", ".spec.keys", "The labels whose values it holds."),
        AGE,
    ],
};

/// Returns why the API server would refuse a Node in a map.
pub fn map_node_fault(entry: &MapNode) -> Option<String> {
    let mut parsed = Vec::new();
    let text = serde_json::to_string(entry).ok()?;
    object_tree::read(text.as_bytes(), |node| parsed.push(node)).ok()?;
    let node = parsed.first()?;
    let mut first = FirstProblem(None);
    check(&Field::root(node), &NODE, MAP.noun, &mut first);
    first.0
}

struct FirstProblem(Option<String>);

impl Problems for FirstProblem {
    fn warn(&mut self, field: &Field<'_>, message: String, remedy: String) {
        self.0.get_or_insert_with(|| {
            let field = shorten(field.to_string());
            format!("{field}: {}; {}", shorten(message), shorten(remedy))
        });
    }
}

const SPEC: &[Property] = &[
    Property {
        name: "shard",
        shape: Shape::Number {
            least: 0,
            most: 9_999,
        },
        need: Need::Required,
        about: "The number of this part of the Nodes, counted from 0.",
    },
    Property {
        name: "keys",
        shape: Shape::List {
            of: &Shape::Text(FULL_LABEL_KEY),
            least: 0,
            most: MAX_KEYS,
            set: false,
        },
        need: Need::EmptyList,
        about: "The labels of Nodes whose values it holds, in this order.",
    },
    Property {
        name: "nodes",
        shape: Shape::Map {
            of: &Shape::Object(&NODE),
            most: NODES_PER_SHARD,
            keys: "Node name",
        },
        need: Need::EmptyMap,
        about: "The Nodes, by name.",
    },
];

const RULES: &[Rule] = &[Rule {
    at: "nodes",
    holds: Expr::AsLong("nodes", "v", "keys"),
    problem: "a Node has more or fewer values than there are keys",
    remedy: "write a value for each key, an empty one for a label that the Node does not have",
}];

const NODE: Object = Object {
    parts: &[&[
        Property {
            name: "v",
            shape: Shape::List {
                of: &Shape::Text(LABEL_VALUE),
                least: 0,
                most: MAX_KEYS,
                set: false,
            },
            need: Need::EmptyList,
            about: "The values of the labels, in the order of keys; empty = the Node does not have the label, or it is in emptyLabels.",
        },
        Property {
            name: "emptyLabels",
            shape: Shape::List {
                of: &Shape::Text(FULL_LABEL_KEY),
                least: 0,
                most: MAX_KEYS,
                set: false,
            },
            need: Need::Optional,
            about: "The labels of keys that the Node has with an empty value. For a nodeSelector they are not missing.",
        },
        Property {
            name: "ips",
            shape: Shape::List {
                of: &Shape::Text(IP_ADDRESS),
                least: 0,
                most: MAX_NODE_ADDRESSES,
                set: false,
            },
            need: Need::EmptyList,
            about: "Its internal addresses.",
        },
        Property {
            name: "podCIDRs",
            shape: Shape::List {
                of: &Shape::Text(IP_RANGE),
                least: 0,
                most: MAX_NODE_POD_CIDRS,
                set: false,
            },
            need: Need::Optional,
            about: "The address ranges of its pods, of spec.podCIDRs. ipvs-topo dns finds the Node of a client by them.",
        },
        Property {
            name: "cpuMilli",
            shape: Shape::Number {
                least: 0,
                most: MAX_NODE_CPU_MILLI.cast_signed(),
            },
            need: Need::Number(0),
            about: "The CPU that pods may use, in thousandths.",
        },
        Property {
            name: "ready",
            shape: Shape::Flag,
            need: Need::Flag(false),
            about: "Whether the Node is ready.",
        },
    ]],
    rules: &[],
    atomic: false,
};
