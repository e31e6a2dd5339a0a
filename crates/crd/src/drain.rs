//! `TopologyDrain`: domains that shall take no new connections for a while.

use super::property::{DOMAIN, LABEL_KEY, Need, Object, PROSE, Property, Resource, Shape, Word};
use super::status::{DRAIN_COLUMNS, DRAIN_STATUS};

/// How far ahead a drain may end.
pub const MAX_AHEAD_HOURS: i64 = 72;

/// The kind `TopologyDrain`.
pub const DRAIN: Resource = Resource {
    kind: "TopologyDrain",
    plural: "topologydrains",
    short: "tdrain",
    namespaced: false,
    noun: "drain",
    about: "Takes new connections away from a zone, a rack or a node for a while. What is open stays open.",
    spec: Object {
        parts: &[SPEC],
        rules: &[],
        atomic: false,
    },
    status: DRAIN_STATUS,
    status_by: "the controller",
    columns: DRAIN_COLUMNS,
};

const SPEC: &[Property] = &[
    Property {
        name: "match",
        shape: Shape::Object(&MATCH),
        need: Need::Required,
        about: "The domains to drain.",
    },
    Property {
        name: "scope",
        shape: Shape::Word(&[
            Word {
                name: "Endpoints",
                about: "endpoints in the domains take no new connections",
            },
            Word {
                name: "Clients",
                about: "nodes in the domains stop preferring their own domain and use the next level",
            },
            Word {
                name: "Both",
                about: "both",
            },
        ]),
        need: Need::Text("Endpoints"),
        about: "Whom it is for.",
    },
    Property {
        name: "expiresAt",
        shape: Shape::Time,
        need: Need::Required,
        about: "When it ends by itself: at most 72 hours ahead. Write a later time to renew it. The API server cannot compare with its clock, so the controller and the agents refuse a drain that ends later.",
    },
    Property {
        name: "rampSeconds",
        shape: Shape::Number {
            least: 0,
            most: 86_400,
        },
        need: Need::Number(0),
        about: "Seconds in which the share of the domains goes down to nothing, in a straight line from the drain's creation. Then they stay in the kernel with weight 0, so that open connections end in their time.",
    },
    Property {
        name: "onLastDomain",
        shape: Shape::Word(&[
            Word {
                name: "Ignore",
                about: "where nothing else remains, the drain does not count: better there than nowhere",
            },
            Word {
                name: "Force",
                about: "it counts all the same, and connections are refused",
            },
        ]),
        need: Need::Text("Ignore"),
        about: "What happens where a Service has endpoints nowhere else.",
    },
    Property {
        name: "hardServices",
        shape: Shape::Word(&[
            Word {
                name: "Ignore",
                about: "the drain does not count for them",
            },
            Word {
                name: "Apply",
                about: "it counts, and where their boundary holds nothing else connections are refused",
            },
        ]),
        need: Need::Text("Ignore"),
        about: "Whether Services that never leave their levels take part.",
    },
    Property {
        name: "reason",
        shape: Shape::Text(PROSE),
        need: Need::Text(""),
        about: "The reason of the drain, for the engineer on call.",
    },
];

const MATCH: Object = Object {
    parts: &[&[
        Property {
            name: "key",
            shape: Shape::Text(LABEL_KEY),
            need: Need::Required,
            about: "What the domains are values of: a label of nodes. node, zone and region are short for kubernetes.io/hostname (the Node's name), topology.kubernetes.io/zone and topology.kubernetes.io/region.",
        },
        Property {
            name: "values",
            shape: Shape::List {
                of: &Shape::Text(DOMAIN),
                least: 1,
                most: 64,
                set: true,
            },
            need: Need::Required,
            about: "The domains.",
        },
    ]],
    rules: &[],
    atomic: false,
};
