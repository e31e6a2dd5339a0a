//! Counts the Nodes with each label, so that a level that no Node has is detected at once.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::model::Node;

/// Number of Nodes with each label; an empty value counts as absent.
#[derive(Debug, Default)]
pub(super) struct Presence(FxHashMap<Arc<str>, usize>);

impl Presence {
    /// Replaces the labels of `old` by those of `new`. Returns the labels for which the first Node was added or the
    /// last one removed.
    pub(super) fn replace(&mut self, old: Option<&Node>, new: Option<&Node>) -> Vec<Arc<str>> {
        let mut changed = Vec::new();
        for key in keys(new).filter(|key| !has(old, key)) {
            let count = self.0.entry(Arc::clone(key)).or_default();
            *count += 1;
            if *count == 1 {
                changed.push(Arc::clone(key));
            }
        }
        for key in keys(old).filter(|key| !has(new, key)) {
            let Some(count) = self.0.get_mut(key) else {
                continue;
            };
            *count -= 1;
            if *count == 0 {
                self.0.remove(key);
                changed.push(Arc::clone(key));
            }
        }
        changed
    }

    /// Whether a Node has the label `key`.
    pub(super) fn has(&self, key: &str) -> bool {
        self.0.contains_key(key)
    }

    /// The labels that at least one Node has, in no order.
    pub(super) fn keys(&self) -> impl Iterator<Item = &Arc<str>> {
        self.0.keys()
    }
}

fn keys(node: Option<&Node>) -> impl Iterator<Item = &Arc<str>> {
    let labels = node.into_iter().flat_map(|node| node.labels.iter());
    labels
        .filter(|(_, value)| !value.is_empty())
        .map(|(key, _)| key)
}

fn has(node: Option<&Node>, key: &str) -> bool {
    let value = node.and_then(|node| node.labels.get(key));
    value.is_some_and(|value| !value.is_empty())
}
