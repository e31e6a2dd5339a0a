//! What was told of the objects of one collection.

use std::time::Duration;

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
    /// Whether any list has ended.
    was_listed: bool,
    doubt: Option<Doubt>,
}

/// A list that was read again and lacked more than half of what is known.
#[derive(Debug, Clone, Copy)]
struct Doubt {
    /// Its number.
    list: u32,
    /// When it ended.
    since: Duration,
    /// How many objects it lacked.
    lacking: usize,
}

/// How long what a doubtful list lacks stays at least.
pub(super) const CONFIRM: Duration = Duration::from_secs(60);

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
    ///
    /// With a moment (of a clock that only grows) a list that was read again is not believed at first if it lacks more
    /// than half of what is known: an empty etcd and another cluster's API server answer so. What it lacks stays until a
    /// list that ends [`CONFIRM`] later or after that lacks it too.
    pub(super) fn end(&mut self, kind: Kind, now: Option<Duration>) -> Vec<ObjectKey> {
        let again = std::mem::replace(&mut self.was_listed, true);
        self.listed = true;
        let list = self.list;
        let lacking = self.lacking(|entry| entry.list != list);
        let known = self.objects.len();
        let Some(now) = now.filter(|_| again && lacking * 2 > known) else {
            self.doubt = None;
            return self.take_out(kind, |entry| entry.list != list);
        };
        let new = Doubt {
            list,
            since: now,
            lacking,
        };
        let doubt = *self.doubt.get_or_insert(new);
        if now < doubt.since + CONFIRM {
            return Vec::new();
        }
        let is_unseen = |entry: &Entry| entry.list.wrapping_sub(doubt.list) > u32::MAX / 2;
        let unseen = self.lacking(is_unseen);
        let rest = lacking.saturating_sub(unseen);
        if rest * 2 > known.saturating_sub(unseen) {
            // It lacks much that the first list did name.
            self.doubt = Some(Doubt {
                lacking: rest,
                ..new
            });
            return self.take_out(kind, is_unseen);
        }
        self.doubt = None;
        self.take_out(kind, |entry| entry.list != list)
    }

    /// When the list in doubt may be confirmed, and how many objects it lacked.
    pub(super) fn doubt(&self) -> Option<(Duration, usize)> {
        let doubt = self.doubt?;
        Some((doubt.since + CONFIRM, doubt.lacking))
    }

    fn lacking(&self, is_so: impl Fn(&Entry) -> bool) -> usize {
        self.objects.values().filter(|entry| is_so(entry)).count()
    }

    fn take_out(&mut self, kind: Kind, is_so: impl Fn(&Entry) -> bool) -> Vec<ObjectKey> {
        let gone = self.objects.extract_if(|_, entry| is_so(entry));
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
