//! Which labels Nodes have, and what was most likely meant by a level that no Node has.
//!
//! Policies of every namespace are compared with it at each plan, so it is counted when a Node changes, and a label that
//! no Node has is compared with all others once.

use std::collections::btree_map::Values;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use serde_json::Value;
use topology_core::model::{Labels, ObjectName};
use topology_core::policy::suggest;

use super::validate::ValidatedPolicy;
use super::value::{Condition, list, text};
use super::{Collection, Name, News, State};
use crate::event_recorder::{LEVEL_UNKNOWN, LEVELS_KNOWN};

/// The condition of a policy that is about its labels.
const CONDITION: &str = "LevelsKnown";

/// The labels that Nodes have; an empty value counts as none.
#[derive(Debug, Default)]
pub(super) struct NodeLabels {
    /// How many Nodes have each.
    count: BTreeMap<Arc<str>, usize>,
    /// What was most likely meant by each label that a policy uses and no Node has.
    pub(super) meant: HashMap<String, Option<String>>,
}

impl NodeLabels {
    /// Counts the labels `new` of a Node in place of `old`.
    pub(super) fn replace(&mut self, old: Option<&Labels>, new: Option<&Labels>) {
        let mut is_changed = false;
        for key in keys(new) {
            let count = self.count.entry(Arc::clone(key)).or_default();
            *count += 1;
            is_changed |= *count == 1;
        }
        for key in keys(old) {
            let count = self.count.get_mut(key).map(|count| {
                *count = count.saturating_sub(1);
                *count
            });
            if count == Some(0) {
                self.count.remove(key);
                is_changed = true;
            }
        }
        if is_changed {
            self.meant.clear();
        }
    }

    /// Whether some Node has the label.
    pub(super) fn has(&self, key: &str) -> bool {
        self.count.contains_key(key)
    }

    /// The first label of a policy that no Node has.
    fn unknown<'p>(&self, policy: &'p ValidatedPolicy) -> Option<&'p String> {
        let mut labels = policy.labels.iter();
        labels.find(|key| !self.has(key))
    }

    /// Finds what was meant by the labels of these policies that no Node has, and forgets those of other policies.
    pub(super) fn suggest_for(
        &mut self,
        policies: Values<'_, (Collection, Name), ValidatedPolicy>,
    ) {
        let mut before = std::mem::take(&mut self.meant);
        let unknown: BTreeSet<&String> =
            policies.filter_map(|policy| self.unknown(policy)).collect();
        for key in unknown {
            let labels = self.count.keys().map(|label| &**label);
            let meant = before.remove(key).unwrap_or_else(|| suggest(key, labels));
            self.meant.insert(key.clone(), meant);
        }
    }

    /// Whether every client would be refused, because no Node has a label of the levels of a hard policy.
    fn refuses_everywhere(&self, policy: &ValidatedPolicy) -> bool {
        let mut boundary = policy.boundary.iter().flatten();
        policy.boundary.is_some() && !boundary.any(|key| self.has(key))
    }
}

fn keys(labels: Option<&Labels>) -> impl Iterator<Item = &Arc<str>> {
    let labels = labels.into_iter().flat_map(Labels::iter);
    labels
        .filter(|(_, value)| !value.is_empty())
        .map(|(key, _)| key)
}

/// Whether some Node has each label that a policy uses.
pub(super) fn condition(
    state: &State,
    collection: Collection,
    policy: &ValidatedPolicy,
) -> Condition {
    let unknown = state.labels.unknown(policy);
    let Some(unknown) = unknown.filter(|_| !state.nodes.is_empty()) else {
        let message = "some Node has each label that the policy uses".to_owned();
        return Condition::new(CONDITION, "True", Levels::Known.word(), message);
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
    Condition::new(CONDITION, "False", Levels::LevelUnknown.word(), message)
}

/// What an Event tells of a `ClusterTopologyPolicy` whose condition became false, or true again, by the write of `after`.
/// Of the policies of a namespace the Events of its Services tell.
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
    const fn word(self) -> &'static str {
        match self {
            Self::Known => "Known",
            Self::LevelUnknown => "LevelUnknown",
        }
    }
}
