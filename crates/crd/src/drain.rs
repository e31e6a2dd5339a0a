//! Describes `TopologyDrain`: domains that take no new connections for a limited time.

use super::property::{DOMAIN, LABEL_KEY, Need, Object, PROSE, Property, Resource, Shape, Word};
use super::status::{DRAIN_COLUMNS, DRAIN_STATUS};

/// How far ahead a drain may end.
pub const MAX_AHEAD_HOURS: i64 = 72;

pub const DRAIN: Resource = Resource {
    kind: "TopologyDrain",
    plural: "topologydrains",
    short: "tdrain",
    namespaced: false,
    noun: "drain",
    about: "Takes new connections away from a zone, a rack or a node for a limited time. Open connections stay open.",
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
        about: "What the drain applies to.",
    },
    Property {
        name: "expiresAt",
        shape: Shape::Time,
        need: Need::Required,
        about: "The time at which the drain ends by itself, at most 72 hours ahead. Write a later time to renew it. The API server cannot compare it with its clock, so the controller and the agents refuse a drain that ends later.",
    },
    Property {
        name: "rampSeconds",
        shape: Shape::Number {
            least: 0,
            most: 86_400,
        },
        need: Need::Number(0),
        about: "Seconds in which the share of the domains goes down to 0, linearly from the creation of the drain. After that, their real servers stay in the kernel with weight 0 until open connections end.",
    },
    Property {
        name: "onLastDomain",
        shape: Shape::Word(&[
            Word {
                name: "Ignore",
                about: "the drain is ignored, so the Service keeps its endpoints",
            },
            Word {
                name: "Force",
                about: "the drain applies, and connections are refused",
            },
        ]),
        need: Need::Text("Ignore"),
        about: "What happens to a Service that has endpoints in no other domain.",
    },
    Property {
        name: "hardServices",
        shape: Shape::Word(&[
            Word {
                name: "Ignore",
                about: "the drain does not apply to them",
            },
            Word {
                name: "Apply",
                about: "the drain applies; without another endpoint in their levels, connections are refused",
            },
        ]),
        need: Need::Text("Ignore"),
        about: "Whether the drain applies to Services that never leave their levels.",
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
            about: "The label of nodes whose values are the domains. node, zone and region are short for kubernetes.io/hostname (the Node's name), topology.kubernetes.io/zone and topology.kubernetes.io/region.",
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
