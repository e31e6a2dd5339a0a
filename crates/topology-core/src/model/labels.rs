//! Labels of Nodes, Services and namespaces.

use std::sync::Arc;

/// Labels of an object, sorted by key.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Labels(Box<[(Arc<str>, Arc<str>)]>);

impl Labels {
    /// The value of `key`.
    pub fn get(&self, key: &str) -> Option<&Arc<str>> {
        let at = self
            .0
            .binary_search_by(|(known, _)| (**known).cmp(key))
            .ok()?;
        self.0.get(at).map(|(_, value)| value)
    }

    /// All labels, sorted by key.
    pub fn iter(&self) -> impl Iterator<Item = (&Arc<str>, &Arc<str>)> {
        self.0.iter().map(|(key, value)| (key, value))
    }
}

impl FromIterator<(Arc<str>, Arc<str>)> for Labels {
    /// The last value of a repeated key wins.
    fn from_iter<I: IntoIterator<Item = (Arc<str>, Arc<str>)>>(labels: I) -> Self {
        let sorted: std::collections::BTreeMap<_, _> = labels.into_iter().collect();
        Self(sorted.into_iter().collect())
    }
}
