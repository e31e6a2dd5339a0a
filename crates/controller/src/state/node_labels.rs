//! Counts the labels of Nodes, and suggests a label in place of one that no Node has.
//!
//! Each plan checks the labels of all policies. So labels are counted when a Node changes, and a
//! label that no Node has is compared with all others only once.

use std::collections::btree_map::Values;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use topology_core::model::{Labels, ObjectName};
use topology_core::policy::suggest;

use super::collection::Collection;
use super::validate::ValidatedPolicy;

/// The labels of Nodes; a label with an empty value counts as missing.
#[derive(Debug, Default)]
pub(super) struct LabelCounts {
    count: BTreeMap<Arc<str>, usize>,
    /// The most similar label, for each label that a policy uses and no Node has.
    pub(super) meant: HashMap<String, Option<String>>,
}

impl LabelCounts {
    /// Replaces the labels `old` of a Node by `new`.
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

    pub(super) fn has(&self, key: &str) -> bool {
        self.count.contains_key(key)
    }

    /// The first label of a policy that no Node has.
    pub(super) fn unknown<'p>(&self, policy: &'p ValidatedPolicy) -> Option<&'p String> {
        let mut labels = policy.labels.iter();
        labels.find(|key| !self.has(key))
    }

    /// Finds a suggestion for each label of these policies that no Node has; removes all others.
    pub(super) fn suggest_for(
        &mut self,
        policies: Values<'_, (Collection, ObjectName), ValidatedPolicy>,
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

    /// Whether the policy refuses every client: it is hard, and no Node has a label of its levels.
    pub(super) fn refuses_everywhere(&self, policy: &ValidatedPolicy) -> bool {
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
