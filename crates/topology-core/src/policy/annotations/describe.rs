//! Describes each annotation: the range that is enforced, and the text in the documentation.

use super::values::{
    LEAST_OVERPROVISION, MAX_COUNT, MAX_PERCENT, MAX_SECONDS, MAX_SUBSET, MAX_WEIGHT, OFF,
};
use crate::scheduler::Scheduler;

/// A topology annotation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Annotation {
    /// The name after [`PREFIX`](super::PREFIX).
    pub name: &'static str,
    /// The type of its value.
    pub value: ValueKind,
    /// The default, as text.
    pub default: &'static str,
    /// The effect, as text.
    pub about: &'static str,
}

/// The type of an annotation's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueKind {
    /// One of these values.
    Word(&'static [&'static str]),
    /// Levels, nearest first.
    Levels,
    /// A list of level and weight.
    Weights {
        /// The largest weight.
        most: u32,
    },
    /// A list of level and required number of ready endpoints.
    Thresholds {
        /// The largest count.
        most: u32,
    },
    /// A percentage, or a value for none.
    Percent {
        /// The smallest.
        least: u32,
        /// The largest.
        most: u32,
        /// The value for none.
        none: &'static str,
    },
    /// A list of labels of the client's node.
    Domains,
    /// A duration in seconds.
    Seconds {
        /// The largest number.
        most: u32,
    },
    /// A whole number.
    Number {
        /// The smallest.
        least: u32,
        /// The largest.
        most: u32,
    },
    /// The name of an object.
    Name,
}

/// All topology annotations of Services.
pub const ANNOTATIONS: [Annotation; 14] = [
    Annotation {
        name: "mode",
        value: ValueKind::Word(&["hard", "prefer", "weighted", "balanced", "none"]),
        default: "follows from the others: `weights` is weighted, `keys` with `*` is prefer, without is hard",
        about: "how endpoints are chosen; checked against the other annotations",
    },
    Annotation {
        name: "keys",
        value: ValueKind::Levels,
        default: "",
        about: "the first level with endpoints takes all traffic",
    },
    Annotation {
        name: "weights",
        value: ValueKind::Weights { most: MAX_WEIGHT },
        default: "",
        about: "a share for each level, nearest first; 0 means only when nearer levels are empty",
    },
    Annotation {
        name: "weighting",
        value: ValueKind::Word(&["tier-share", "endpoint-bias"]),
        default: "`tier-share`",
        about: "whether a weight is the share of the level, or of each endpoint in it",
    },
    Annotation {
        name: "empty-tier",
        value: ValueKind::Word(&["cascade", "renormalize"]),
        default: "`cascade`",
        about: "where the share of an empty level goes: to the next outer one, or to all in proportion",
    },
    Annotation {
        name: "min-ready",
        value: ValueKind::Thresholds { most: MAX_COUNT },
        default: "one endpoint",
        about: "with fewer ready endpoints a level counts as part of the next outer one; not for the last; at most 16 levels",
    },
    Annotation {
        name: "overprovision",
        value: ValueKind::Percent {
            least: LEAST_OVERPROVISION,
            most: MAX_PERCENT,
            none: OFF,
        },
        default: "`off`",
        about: "a level keeps its share while ready endpoints times this percentage cover all of its endpoints; below that, it passes the rest outward",
    },
    Annotation {
        name: "max-overload",
        value: ValueKind::Percent {
            least: 0,
            most: MAX_PERCENT,
            none: OFF,
        },
        default: "`off`; 0 with `balanced`",
        about: "how much more than an even share the endpoints of a level may get; the rest goes outward",
    },
    Annotation {
        name: "avoid",
        value: ValueKind::Domains,
        default: "",
        about: "no endpoint that shares this with the client's node; with `:soft`, such an endpoint is used if no other remains; without levels it is added to the source that decides; at most 16 entries",
    },
    Annotation {
        name: "on-no-match",
        value: ValueKind::Word(&["reject", "drop"]),
        default: "`reject`",
        about: "what clients see if no endpoint may serve them",
    },
    Annotation {
        name: "slow-start",
        value: ValueKind::Seconds { most: MAX_SECONDS },
        default: "0",
        about: "a new endpoint grows from a tenth of its share to all of it",
    },
    Annotation {
        name: "subset",
        value: ValueKind::Number {
            least: 1,
            most: MAX_SUBSET,
        },
        default: "no limit",
        about: "the largest weight; if weights would be larger, each node uses only part of the farthest level",
    },
    Annotation {
        name: "policy",
        value: ValueKind::Name,
        default: "",
        about: "a TopologyPolicy of the namespace decides instead; no other annotation may be set",
    },
    Annotation {
        name: "scheduler",
        value: ValueKind::Word(&Scheduler::NAMES),
        default: "the agent's, `wrr`",
        about: "the kernel's scheduler for this Service; `explain` says what weights mean under it; without levels it changes nothing else",
    },
];
