//! Occurrences that wait for a write. Namespaces share the space and take turns.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound::{Excluded, Included, Unbounded};
use std::sync::Arc;

use super::reasons::Key;

/// Limit for all namespaces.
pub(super) const MOST_PENDING: usize = 256;

/// Occurrences since the last write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Occurrence {
    pub(super) times: u64,
    pub(super) since: i64,
    pub(super) note: String,
    pub(super) uid: Option<String>,
}

#[derive(Debug, Default)]
pub(super) struct PendingEvents {
    namespaces: BTreeMap<Arc<str>, BTreeMap<Key, Occurrence>>,
    /// The namespace that had the last turn.
    last: Arc<str>,
}

impl PendingEvents {
    /// Adds an occurrence, or counts it if the key waits already. Returns false if an occurrence was dropped: this one
    /// if its namespace has as many as any other, or the last of the namespace with the most.
    pub(super) fn add(&mut self, key: Key, added: Occurrence) -> bool {
        let namespace = &key.0.namespace;
        let own = self.namespaces.get_mut(namespace);
        let own_count = own.as_ref().map_or(0, |own| own.len());
        if let Some(known) = own.and_then(|own| own.get_mut(&key)) {
            known.times += added.times;
            known.note = added.note;
            return true;
        }
        let is_full = self.len() >= MOST_PENDING;
        if is_full && !self.drop_from_larger(own_count) {
            return false;
        }
        let own = self.namespaces.entry(Arc::clone(namespace)).or_default();
        own.insert(key, added);
        !is_full
    }

    /// Makes space for a namespace with this number of occurrences.
    fn drop_from_larger(&mut self, own_count: usize) -> bool {
        let namespaces = self.namespaces.values_mut();
        let largest = namespaces.max_by_key(|occurrences| occurrences.len());
        // If it has only one more, both would drop each other's in turn.
        let larger = largest.filter(|largest| largest.len() > own_count + 1);
        larger.is_some_and(|larger| larger.pop_last().is_some())
    }

    fn len(&self) -> usize {
        self.namespaces.values().map(BTreeMap::len).sum()
    }

    pub(super) fn remove(&mut self, key: &Key) -> Option<Occurrence> {
        let own = self.namespaces.get_mut(&key.0.namespace)?;
        let removed = own.remove(key);
        if own.is_empty() {
            self.namespaces.remove(&key.0.namespace);
        }
        removed
    }

    pub(super) fn clear(&mut self) {
        self.namespaces.clear();
    }

    /// The keys of at most `most` occurrences that are due: one of each namespace, then the second of each, and so on.
    /// It begins with the namespace after that of [`PendingEvents::had_turn`].
    pub(super) fn in_turns(&self, most: usize, is_due: impl Fn(&Key) -> bool) -> Vec<Key> {
        let last = &*self.last;
        let after = (Excluded(last), Unbounded);
        let until = (Unbounded, Included(last));
        let next = self.namespaces.range::<str, _>(after);
        let others = self.namespaces.range::<str, _>(until);
        let mut queues: VecDeque<_> = next
            .chain(others)
            .map(|(_, occurrences)| occurrences.keys().filter(|key| is_due(key)))
            .collect();
        let mut taken: Vec<Key> = Vec::new();
        while taken.len() < most
            && let Some(mut queue) = queues.pop_front()
        {
            if let Some(key) = queue.next() {
                taken.push(key.clone());
                queues.push_back(queue);
            }
        }
        taken
    }

    /// Records that the namespace had its turn.
    pub(super) fn had_turn(&mut self, key: &Key) {
        self.last = Arc::clone(&key.0.namespace);
    }

    pub(super) fn get(&self, key: &Key) -> Option<&Occurrence> {
        self.namespaces.get(&key.0.namespace)?.get(key)
    }
}
