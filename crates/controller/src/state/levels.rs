//! The condition `LevelsKnown` of a policy: whether some Node has each label that it uses.

use serde_json::Value;
use topology_core::model::ObjectName;

use super::collection::Collection;
use super::condition::Verdict;
use super::hints::News;
use super::observed::Observed;
use super::validate::ValidatedPolicy;
use super::value::{list, text};
use crate::event_recorder::{LEVEL_UNKNOWN, LEVELS_KNOWN};

/// The condition of a policy that is about its labels.
const CONDITION: &str = "LevelsKnown";

/// Whether some Node has each label that a policy uses.
pub(super) fn condition(
    state: &Observed,
    collection: Collection,
    policy: &ValidatedPolicy,
) -> Verdict {
    let unknown = state.labels.unknown(policy);
    let Some(unknown) = unknown.filter(|_| !state.nodes.is_empty()) else {
        let message = "some Node has each label that the policy uses".to_owned();
        return Verdict::new(CONDITION, "True", Levels::Known.as_str(), message);
    };
    let meant = state.labels.meant.get(unknown).and_then(Option::as_deref);
    let meant = meant.map_or_else(String::new, |meant| format!("; did you mean {meant}?"));
    let consequence = match (state.labels.refuses_everywhere(policy), collection) {
        (true, Collection::ClusterPolicies) => {
            "the policy is not applied until a Node has a label of its levels"
        }
        (true, _) => "it refuses every client until a Node has a label of its levels",
        (false, _) => "what the policy says of that label has no effect until a Node has it",
    };
    let message = format!("no Node has the label {unknown}{meant}; {consequence}");
    Verdict::new(CONDITION, "False", Levels::LevelUnknown.as_str(), message)
}

/// The Event about a `ClusterTopologyPolicy` whose condition became false, or true again, by the write of `after`.
/// Policies of a namespace have none: the Events of their Services report it.
pub(super) fn news(collection: Collection, before: &Value, after: &Value) -> Option<News> {
    let (was, is) = (written(before), written(after)?);
    let status = |one: &Value| text(one, "/status") == "True";
    let was_known = was.is_none_or(status);
    if collection != Collection::ClusterPolicies || was_known == status(is) {
        return None;
    }
    let word = if was_known {
        LEVEL_UNKNOWN
    } else {
        LEVELS_KNOWN
    };
    Some(News {
        key: (ObjectName::new("", text(after, "/metadata/name")), word),
        since: None,
        note: text(is, "/message").to_owned(),
        uid: Some(text(after, "/metadata/uid").to_owned()),
    })
}

fn written(object: &Value) -> Option<&Value> {
    let mut conditions = list(object, "/status/conditions").iter();
    conditions.find(|one| text(one, "/type") == CONDITION)
}

/// Whether Nodes have the labels that a policy uses: the reason of its condition `LevelsKnown`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Levels {
    /// Some Node has each.
    Known,
    /// No Node has one of them.
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
