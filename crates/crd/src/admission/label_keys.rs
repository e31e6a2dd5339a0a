//! Refuses labels in annotations of Services that `--annotation-label-keys` of the agents would
//! refuse.

use topology_core::policy::{ANNOTATIONS, MAX_LEVELS, PREFIX};

use super::annotations::{TEXTS, has, only_if, variable};
use super::policy::{Check, Policy};
use super::values::conditions;
use crate::map::REQUIRED_KEYS;
use crate::policy::ALIASES;

/// The annotations that contain labels.
const NAMING: [&str; 3] = ["keys", "weights", "avoid"];

pub(super) fn policy() -> Policy {
    let mut policy = Policy {
        name: "ipvs-topo-annotation-labels",
        group: "",
        version: "v1",
        resources: &["services"],
        only_if: only_if(),
        // The administrator replaces the first variable.
        variables: vec![
            ("allowed".to_owned(), "[]".to_owned()),
            ("always".to_owned(), always()),
            ("texts".to_owned(), TEXTS.to_owned()),
        ],
        checks: Vec::new(),
    };
    for one in ANNOTATIONS.iter().filter(|one| NAMING.contains(&one.name)) {
        let (has, name) = (has(one.name), variable(one.name));
        let text = format!("variables.texts['{PREFIX}{}'].trim()", one.name);
        let found = conditions(&name, &one.value, &text);
        for (name, is) in found.variables {
            policy.variables.push((name, format!("{has} ? {is} : []")));
        }
        let levels = format!("variables.{name}Levels");
        // Agents do not use a longer list.
        let holds = format!(
            "{levels}.size() > {MAX_LEVELS} || {levels}.all(x, x in variables.always || x in variables.allowed)"
        );
        policy.checks.push(Check::new(
            holds,
            format!(
                "{PREFIX}{}: annotations may use only the labels that the administrators of this cluster allow; use node, zone or region, or ask them for the label",
                one.name
            ),
        ));
    }
    policy
}

/// Labels that are always allowed.
fn always() -> String {
    let named = ALIASES.iter().map(|[_, key]| *key);
    let mut keys: Vec<&str> = named.chain(REQUIRED_KEYS).chain(["*"]).collect();
    keys.sort_unstable();
    keys.dedup();
    format!("['{}']", keys.join("', '"))
}
