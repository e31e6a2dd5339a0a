//! Describes one element of `levels`.

use super::super::property::{LEVEL_KEY, Need, Object, Property, SHORT_NAME, Shape};
use super::super::rule::{Expr, Rule};

/// Short names of labels.
pub(in super::super) const ALIASES: &[[&str; 2]] = &[
    ["node", "kubernetes.io/hostname"],
    ["zone", "topology.kubernetes.io/zone"],
    ["region", "topology.kubernetes.io/region"],
];

pub(super) const LEVEL: Object = Object {
    parts: &[&[
        Property {
            name: "name",
            shape: Shape::Text(SHORT_NAME),
            need: Need::Optional,
            about: "A name for people. It has no effect.",
        },
        Property {
            name: "key",
            shape: Shape::Text(LEVEL_KEY),
            need: Need::Optional,
            about: "The label that the endpoint's node and the client's node share. node, zone and region are short for kubernetes.io/hostname (the same Node, by name), topology.kubernetes.io/zone and topology.kubernetes.io/region.",
        },
        Property {
            name: "any",
            shape: Shape::Flag,
            need: Need::Flag(false),
            about: "In place of a key: every endpoint belongs to the level. Allowed only for the last level. Without it, traffic never leaves the levels.",
        },
        Property {
            name: "weight",
            shape: Shape::Number {
                least: 0,
                most: 10_000,
            },
            need: Need::Optional,
            about: "The share of the level, relative to the other weights, which may have any sum. 0 = used only if nearer levels are empty. Required in mode Weighted, not allowed in other modes.",
        },
        Property {
            name: "minReadyEndpoints",
            shape: Shape::Number {
                least: 1,
                most: 100_000,
            },
            need: Need::Number(1),
            about: "With fewer ready endpoints, the level merges into the next outer one.",
        },
        Property {
            name: "minReadyPercent",
            shape: Shape::Number {
                least: 0,
                most: 100,
            },
            need: Need::Number(0),
            about: "If a smaller percentage of its endpoints is ready, the level merges into the next outer one.",
        },
    ]],
    rules: &[&[Rule {
        at: "",
        holds: Expr::Not(&Expr::Same(&Expr::Has("key"), &Expr::Set("any"))),
        problem: "a level has a key or `any: true`, and not both",
        remedy: "write one of the two",
    }]],
    atomic: false,
};
