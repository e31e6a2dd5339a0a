//! What was told of the objects of one collection.

use std::time::Duration;

use rustc_hash::FxHashMap;
use topology_core::model::ObjectName;

use crate::object::{Kind, ObjectKey};
use crate::source::State;

/// The objects of one collection.
#[derive(Debug, Default)]
pub(super) struct KnownObjects {
    objects: FxHashMap<ObjectName, Entry>,
    /// Which list is being read; grows with each.
    list: u32,
    listed: bool,
    /// Whether a list has begun and has not ended.
    reading: bool,
    /// The last list that was believed.
    believed: u32,
    /// Whether any list has ended.
    was_listed: bool,
    doubt: Option<ListDoubt>,
}

/// A list that was read again and lacked more than half of what is known.
#[derive(Debug, Clone, Copy)]
struct ListDoubt {
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
    /// The list that was read, or had been read last, when it became known.
    born: u32,
}

/// Whether one list was read before another.
fn is_before(list: u32, other: u32) -> bool {
    list.wrapping_sub(other) > u32::MAX / 2
}

impl KnownObjects {
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

    /// Whether what is known is what the last list named, with the changes since.
    pub(super) fn is_settled(&self) -> bool {
        !self.reading && self.doubt.is_none()
    }

    /// A list begins.
    pub(super) fn begin(&mut self) {
        self.list = self.list.wrapping_add(1);
        self.reading = true;
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
    /// list that ends [`CONFIRM`] later or after that lacks it too. Objects that only lists in doubt have named do not
    /// count as known: those of another cluster prove nothing about ours.
    pub(super) fn end(&mut self, kind: Kind, now: Option<Duration>) -> Vec<ObjectKey> {
        let again = std::mem::replace(&mut self.was_listed, true);
        (self.listed, self.reading) = (true, false);
        let (list, believed) = (self.list, self.believed);
        let doubt = now.filter(|_| again).and_then(|now| {
            let lacking = self.lacking(list, |entry| !is_before(believed, entry.born))?;
            let new = ListDoubt {
                list,
                since: now,
                lacking,
            };
            Some((now, new))
        });
        match doubt {
            None => self.believe(kind),
            Some((now, new)) => self.doubt_or_confirm(kind, now, new),
        }
    }

    /// Everything that the present list did not name is gone.
    fn believe(&mut self, kind: Kind) -> Vec<ObjectKey> {
        self.doubt = None;
        self.believed = self.list;
        let list = self.list;
        self.take_out(kind, |entry| entry.list != list)
    }

    /// The present list lacks much. What the first list in doubt lacked too is gone, if that was long enough ago.
    fn doubt_or_confirm(&mut self, kind: Kind, now: Duration, new: ListDoubt) -> Vec<ObjectKey> {
        let doubt = *self.doubt.get_or_insert(new);
        if now < doubt.since + CONFIRM {
            return Vec::new();
        }
        let is_unseen = |entry: &Entry| is_before(entry.list, doubt.list);
        let was_there = |entry: &Entry| !is_unseen(entry) && !is_before(doubt.list, entry.born);
        let Some(lacking) = self.lacking(self.list, was_there) else {
            return self.believe(kind);
        };
        // It lacks much that the first list did name.
        self.believed = doubt.list;
        self.doubt = Some(ListDoubt { lacking, ..new });
        self.take_out(kind, is_unseen)
    }

    /// When the list in doubt may be confirmed, and how many objects it lacked.
    pub(super) fn doubt(&self) -> Option<(Duration, usize)> {
        let doubt = self.doubt?;
        Some((doubt.since + CONFIRM, doubt.lacking))
    }

    /// How many of these objects a list did not name, if it is more than half of them.
    fn lacking(&self, list: u32, is_one: impl Fn(&Entry) -> bool) -> Option<usize> {
        let these = self.objects.values().filter(|entry| is_one(entry));
        let (mut known, mut lacking) = (0, 0);
        for entry in these {
            known += 1;
            lacking += usize::from(entry.list != list);
        }
        (lacking * 2 > known).then_some(lacking)
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
            born: self.list,
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
