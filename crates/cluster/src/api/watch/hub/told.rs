//! What was told of the objects of one collection.

use rustc_hash::FxHashMap;
use topology_core::model::ObjectName;

use crate::object::{Kind, ObjectKey};
use crate::source::State;

/// The objects of one collection.
#[derive(Debug, Default)]
pub(super) struct Told {
    objects: FxHashMap<ObjectName, Entry>,
    /// Which list is being read; grows with each.
    list: u32,
    listed: bool,
}

/// What was told of one object.
#[derive(Debug, Clone, Copy)]
struct Entry {
    /// What the last `Apply` or `Ignore` said, if there was one.
    told: Option<State>,
    /// Whether a `Keep` came after it.
    kept: bool,
    /// The list that named it last.
    list: u32,
}

impl Told {
    pub(super) fn len(&self) -> usize {
        self.objects.len()
    }

    pub(super) fn has(&self, name: &ObjectName) -> bool {
        self.objects.contains_key(name)
    }

    /// Whether a list has ended once.
    pub(super) fn is_listed(&self) -> bool {
        self.listed
    }

    /// A list begins.
    pub(super) fn begin(&mut self) {
        self.list = self.list.wrapping_add(1);
    }

    /// Every object that is known, by name.
    pub(super) fn names(&self) -> impl Iterator<Item = &ObjectName> {
        self.objects.keys()
    }

    /// The present list need not name any that `is_so`.
    pub(super) fn name_all(&mut self, is_so: impl Fn(&ObjectName) -> bool) {
        let list = self.list;
        let those = self.objects.iter_mut().filter(|(name, _)| is_so(name));
        those.for_each(|(_, entry)| entry.list = list);
    }

    /// What was listed does not count any more.
    pub(super) fn unlist(&mut self) {
        self.listed = false;
    }

    /// A list ends: takes out what it did not name, by name.
    pub(super) fn end(&mut self, kind: Kind) -> Vec<ObjectKey> {
        self.listed = true;
        let list = self.list;
        let gone = self.objects.extract_if(|_, entry| entry.list != list);
        let mut gone: Vec<ObjectKey> = gone.map(|(name, _)| ObjectKey { kind, name }).collect();
        gone.sort_unstable();
        gone
    }

    /// Takes note of an object. Returns whether it is news.
    pub(super) fn put(&mut self, key: &ObjectKey, state: State) -> bool {
        let new = Entry {
            told: None,
            kept: false,
            list: self.list,
        };
        let entry = match self.objects.get_mut(&key.name) {
            Some(entry) => entry,
            None => self.objects.entry(key.name.clone()).or_insert(new),
        };
        entry.list = self.list;
        if state == State::Invalid {
            return !std::mem::replace(&mut entry.kept, true);
        }
        entry.kept = false;
        entry.told.replace(state) != Some(state)
    }

    /// Whether the object could be used at some time.
    pub(super) fn was_good(&self, name: &ObjectName) -> bool {
        let entry = self.objects.get(name);
        entry.is_some_and(|entry| matches!(entry.told, Some(State::Good(_))))
    }

    /// Forgets an object. Returns whether it was known.
    pub(super) fn remove(&mut self, name: &ObjectName) -> bool {
        self.objects.remove(name).is_some()
    }
}
