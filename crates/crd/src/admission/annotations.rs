//! Refuses annotations of Services that the agent would ignore, with the same messages.

use topology_core::policy::{ANNOTATIONS, PREFIX};

use super::policy::{Check, Policy};
use super::values::conditions;

/// The annotations that need levels.
const ABOUT_LEVELS: [&str; 7] = [
    "weighting",
    "empty-tier",
    "min-ready",
    "overprovision",
    "max-overload",
    "subset",
    "slow-start",
];
/// The annotations of the Service; an empty map if there are none.
pub(super) const TEXTS: &str =
    "(has(object.metadata.annotations) ? object.metadata.annotations : {})";
/// The annotations before the change; an empty map for a new Service.
const BEFORE: &str = "(oldObject != null && has(oldObject.metadata.annotations) ? oldObject.metadata.annotations : {})";

pub(super) fn policy() -> Policy {
    let mut policy = Policy {
        name: "ipvs-topo-service-annotations",
        group: "",
        version: "v1",
        resources: &["services"],
        only_if: only_if(),
        variables: vec![
            ("texts".to_owned(), TEXTS.to_owned()),
            (
                "ours".to_owned(),
                format!("variables.texts.filter(k, k.startsWith('{PREFIX}'))"),
            ),
        ],
        checks: vec![Check::new(
            format!("variables.ours.all(k, k in [{}])", known()),
            format!(
                "unknown annotation of {PREFIX}; known are {}",
                ANNOTATIONS.map(|one| one.name).join(", ")
            ),
        )],
    };
    for one in &ANNOTATIONS {
        let (has, name) = (has(one.name), variable(one.name));
        let text = format!("variables.texts['{PREFIX}{}'].trim()", one.name);
        let found = conditions(&name, &one.value, &text);
        for (name, is) in found.variables {
            let otherwise = if name.ends_with("Number") { "''" } else { "[]" };
            let is = format!("{has} ? {is} : {otherwise}");
            policy.variables.push((name, is));
        }
        for check in found.checks {
            policy.checks.push(Check::new(
                format!("!({has}) || ({})", check.holds),
                format!("{PREFIX}{}: {}", one.name, check.message),
            ));
        }
    }
    together(&mut policy);
    policy
}

/// A change of other parts of a Service is accepted, whatever its annotations are.
pub(super) fn only_if() -> Vec<(&'static str, String)> {
    let is_new = format!(
        "{TEXTS}.exists(k, k.startsWith('{PREFIX}') && (!(k in {BEFORE}) || {BEFORE}[k] != {TEXTS}[k]))"
    );
    let is_gone = format!("{BEFORE}.exists(k, k.startsWith('{PREFIX}') && !(k in {TEXTS}))");
    vec![(
        "topology-annotations-change",
        format!("{is_new} || {is_gone}"),
    )]
}

fn known() -> String {
    let names = ANNOTATIONS.map(|one| format!("'{PREFIX}{}'", one.name));
    names.join(", ")
}

pub(super) fn has(name: &str) -> String {
    format!("'{PREFIX}{name}' in variables.texts")
}

/// `min-ready` as the name of a CEL variable: `minReady`.
pub(super) fn variable(name: &str) -> String {
    let mut parts = name.split('-');
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (first, rest) = part.split_at_checked(1).unwrap_or_default();
        text.push_str(&first.to_ascii_uppercase());
        text.push_str(rest);
    }
    text
}

/// Rules between annotations.
fn together(policy: &mut Policy) {
    let text = |name: &str| format!("variables.texts['{PREFIX}{name}'].trim()");
    let [mode, keys, weights, named] = ["mode", "keys", "weights", "policy"].map(has);
    let written = text("mode");
    let variables = [
        (
            "levels",
            format!("{weights} ? variables.weightsLevels : variables.keysLevels"),
        ),
        (
            "isBounded",
            "variables.levels.size() == 0 || variables.levels[variables.levels.size() - 1] != '*'"
                .to_owned(),
        ),
        (
            "meant",
            format!(
                "{named} ? 'named' : {mode} ? {written} : {weights} ? 'weighted' : !({keys}) ? 'nothing' : variables.isBounded ? 'hard' : 'prefer'"
            ),
        ),
    ];
    policy
        .variables
        .extend(variables.map(|(name, is)| (name.to_owned(), is)));
    let mut must = |holds: String, message: &str| {
        policy
            .checks
            .push(Check::new(holds, format!("{PREFIX}{message}")));
    };
    must(
        format!("!({named}) || variables.ours.size() == 1"),
        "policy: the named policy decides alone; remove the other annotations, or this one",
    );
    must(
        format!("!({weights} && {keys})"),
        "keys: weights is set too; keep one of them",
    );
    modes(&mut must);
    choices(&mut must);
}

/// Rules between `mode` and the lists.
fn modes(must: &mut impl FnMut(String, &str)) {
    let (keys, weights) = (has("keys"), has("weights"));
    must(
        format!("!(variables.meant in ['hard', 'prefer', 'balanced']) || ({keys} && !({weights}))"),
        "mode: hard, prefer and balanced need keys and no weights, such as keys: node,zone",
    );
    must(
        "variables.meant != 'hard' || variables.isBounded".to_owned(),
        "mode: `*` in a hard list would let everything in; remove `*`, or use mode prefer",
    );
    must(
        "!(variables.meant in ['prefer', 'balanced']) || !variables.isBounded".to_owned(),
        "mode: it falls back to any endpoint; end the keys with `*`, or use mode hard",
    );
    must(
        format!("variables.meant != 'weighted' || {weights}"),
        "mode: weighted needs weights, such as weights: node=80,zone=15,*=5",
    );
}

/// Refuses options that contradict the mode or the levels.
fn choices(must: &mut impl FnMut(String, &str)) {
    for name in ABOUT_LEVELS {
        must(
            format!("!({}) || variables.meant != 'nothing'", has(name)),
            &format!("{name}: needs weights or keys beside it; add one of them"),
        );
        must(
            format!("!({}) || variables.meant != 'none'", has(name)),
            &format!("{name}: mode none has no levels; remove this one, or choose another mode"),
        );
    }
    must(
        format!(
            "!({}) || variables.meant in ['weighted', 'none', 'nothing']",
            has("weighting")
        ),
        "weighting: says what weights mean; give weights instead of keys",
    );
    must(
        format!(
            "!({}) || variables.meant != 'balanced' || variables.texts['{PREFIX}max-overload'].trim() != 'off'",
            has("max-overload")
        ),
        "max-overload: balanced needs a cap; give a percentage, or use mode prefer",
    );
    let hard = "variables.avoidParts.exists(p, p.size() == 1 || p[1] == 'hard')";
    must(
        format!(
            "!({}) || (!(variables.meant in ['none', 'nothing']) && variables.isBounded) || {hard}",
            has("on-no-match")
        ),
        "on-no-match: this policy always finds an endpoint; remove it, or the `*` of the list",
    );
    must(
        format!(
            "!({}) || variables.minReadyLevels.all(x, variables.levels.indexOf(x) >= 0 && variables.levels.indexOf(x) < variables.levels.size() - 1)",
            has("min-ready")
        ),
        "min-ready: a level is not in the list, or the last one, which has no next one to merge into; remove it here",
    );
}
