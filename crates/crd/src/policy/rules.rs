//! Rules between the fields of a policy.

use super::super::rule::{Expr, Rule};
use super::ALIASES;

const HAS_ANY: Expr = Expr::Some("levels", &Expr::Set("any"));
const WEIGHTED: Expr = Expr::Is("mode", "Weighted");
/// Endpoints outside the levels are never used.
const BOUNDED: Expr = Expr::Not(&Expr::Either(&[Expr::Is("mode", "None"), HAS_ANY]));

/// Rules of a `TopologyPolicy` only.
pub(super) const NAMESPACED: &[Rule] = &[Rule {
    at: "enforcement",
    holds: Expr::Is("enforcement", "Default"),
    problem: "only a ClusterTopologyPolicy may override",
    remedy: "use Default, or ask for a ClusterTopologyPolicy",
}];

/// Rules of both kinds.
pub(super) const BOTH: &[Rule] = &[
    Rule {
        at: "levels",
        holds: Expr::Same(&Expr::Is("mode", "None"), &Expr::Empty("levels")),
        problem: "mode None has no levels, and every other mode needs levels",
        remedy: "add or remove levels",
    },
    Rule {
        at: "levels",
        holds: Expr::OnlyLast("levels", &Expr::Set("any")),
        problem: "`any` comes before another level, which would never be used",
        remedy: "write it last",
    },
    Rule {
        at: "levels",
        holds: Expr::Distinct("levels", "key", ALIASES),
        problem: "two levels have the same key",
        remedy: "keep the first",
    },
    Rule {
        at: "levels",
        holds: Expr::Distinct("levels", "name", &[]),
        problem: "two levels have the same name",
        remedy: "rename one",
    },
    Rule {
        at: "levels",
        holds: Expr::If(&Expr::Is("mode", "Hard"), &Expr::Not(&HAS_ANY)),
        problem: "`any` in a hard policy would let everything in",
        remedy: "remove it, or use mode Prefer",
    },
    Rule {
        at: "levels",
        holds: Expr::If(
            &Expr::Either(&[Expr::Is("mode", "Prefer"), Expr::Is("mode", "Balanced")]),
            &HAS_ANY,
        ),
        problem: "Prefer and Balanced fall back to any endpoint",
        remedy: "add a last level with `any: true`, or use mode Hard",
    },
    Rule {
        at: "levels",
        holds: Expr::If(&WEIGHTED, &Expr::Every("levels", &Expr::Has("weight"))),
        problem: "mode Weighted needs the weight of every level",
        remedy: "add weights, or use mode Prefer",
    },
    Rule {
        at: "levels",
        holds: Expr::Either(&[
            WEIGHTED,
            Expr::Not(&Expr::Some("levels", &Expr::Has("weight"))),
        ]),
        problem: "only mode Weighted has weights",
        remedy: "remove them, or use mode Weighted",
    },
    Rule {
        at: "levels",
        holds: Expr::Last("levels", &Expr::AtMost("minReadyEndpoints", 1)),
        problem: "the last level has no next one to merge into",
        remedy: "remove its minReadyEndpoints",
    },
    Rule {
        at: "levels",
        holds: Expr::Last("levels", &Expr::AtMost("minReadyPercent", 0)),
        problem: "the last level has no next one to merge into",
        remedy: "remove its minReadyPercent",
    },
    Rule {
        at: "weighting",
        holds: Expr::If(&Expr::Is("weighting", "EndpointBias"), &WEIGHTED),
        problem: "EndpointBias needs mode Weighted",
        remedy: "use TierShare, or mode Weighted",
    },
    Rule {
        at: "guard.minEndpoints",
        holds: Expr::If(&BOUNDED, &Expr::AtMost("guard.minEndpoints", 0)),
        problem: "a policy that never leaves its levels cannot turn to all endpoints",
        remedy: "remove minEndpoints, or add a last level with `any: true`",
    },
    Rule {
        at: "guard.panicPercent",
        holds: Expr::If(&BOUNDED, &Expr::AtMost("guard.panicPercent", 0)),
        problem: "a policy that never leaves its levels cannot turn to all endpoints",
        remedy: "remove panicPercent, or add a last level with `any: true`",
    },
    Rule {
        at: "avoid",
        holds: Expr::Distinct("avoid", "key", ALIASES),
        problem: "two entries have the same key",
        remedy: "keep the first",
    },
    Rule {
        at: "onNoMatch",
        holds: Expr::Either(&[
            Expr::Is("onNoMatch", "Reject"),
            BOUNDED,
            Expr::Some("avoid", &Expr::Is("mode", "Hard")),
        ]),
        problem: "without a boundary or a hard avoid there is always an endpoint, so nothing is ever dropped",
        remedy: "remove onNoMatch, or the level `any`",
    },
    Rule {
        at: "ownerLimits",
        holds: Expr::If(
            &Expr::Has("ownerLimits"),
            &Expr::Is("enforcement", "Default"),
        ),
        problem: "Override ignores annotations, so there is nothing to limit",
        remedy: "remove ownerLimits",
    },
];

/// Rules of `guard`.
pub(super) const GUARD: &[Rule] = &[Rule {
    at: "staticDemand",
    holds: Expr::Same(
        &Expr::Is("demand", "Static"),
        &Expr::Not(&Expr::Empty("staticDemand")),
    ),
    problem: "demand Static needs staticDemand, and the others have none",
    remedy: "add or remove it",
}];
