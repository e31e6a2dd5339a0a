//! The condition `LevelsKnown` of a policy: whether each label that it uses is on some Node.

use serde_json::Value;
use topology_core::model::ObjectName;

use super::collection::Collection;
use super::condition::NewCondition;
use super::hints::NewEvent;
use super::observed::Observed;
use super::validate::ValidatedPolicy;
use super::value::{list, text};
use crate::event_recorder::{LEVEL_UNKNOWN, LEVELS_KNOWN};

const CONDITION: &str = "LevelsKnown";

/// The condition `LevelsKnown`; true while no Node is observed.
pub(super) fn condition(
    state: &Observed,
    collection: Collection,
    policy: &ValidatedPolicy,
) -> NewCondition {
    let unknown = state.labels.unknown(policy);
    let Some(unknown) = unknown.filter(|_| !state.nodes.is_empty()) else {
        let message = "some Node has each label that the policy uses".to_owned();
        return NewCondition::new(CONDITION, "True", Levels::Known.as_str(), message);
    };
    let meant = state.labels.meant.get(unknown).and_then(Option::as_deref);
    let meant = meant.map_or_else(String::new, |meant| format!("; did you mean {meant}?"));
    let consequence = match (state.labels.refuses_everywhere(policy), collection) {
        (true, Collection::ClusterPolicies) => {
            "the policy is not applied until a Node has a label of its levels"
        }
        (true, _) => "the policy refuses every client until a Node has a label of its levels",
        (false, _) => "the rules for this label have no effect until a Node has it",
    };
    let message = format!("no Node has the label {unknown}{meant}; {consequence}");
    NewCondition::new(CONDITION, "False", Levels::LevelUnknown.as_str(), message)
}

/// The Event about a `ClusterTopologyPolicy` whose condition changes with the write of `after`. A
/// `TopologyPolicy` has no such Event, because the Events of its Services report the problem.
pub(super) fn event(collection: Collection, before: &Value, after: &Value) -> Option<NewEvent> {
    let (was, new) = (written(before), written(after)?);
    let is_true = |condition: &Value| text(condition, "/status") == "True";
    let was_known = was.is_none_or(is_true);
    if collection != Collection::ClusterPolicies || was_known == is_true(new) {
        return None;
    }
    let reason = if was_known {
        LEVEL_UNKNOWN
    } else {
        LEVELS_KNOWN
    };
    Some(NewEvent {
        key: (ObjectName::new("", text(after, "/metadata/name")), reason),
        since: None,
        note: text(new, "/message").to_owned(),
        uid: Some(text(after, "/metadata/uid").to_owned()),
    })
}

fn written(object: &Value) -> Option<&Value> {
    let mut conditions = list(object, "/status/conditions").iter();
    conditions.find(|condition| text(condition, "/type") == CONDITION)
}

/// The reason of the condition `LevelsKnown`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Levels {
    Known,
    LevelUnknown,
}

impl Levels {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Known => "Known",
            Self::LevelUnknown => "LevelUnknown",
        }
    }
}
