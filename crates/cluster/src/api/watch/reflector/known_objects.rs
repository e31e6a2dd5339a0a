//! Tracks the reported state of each object of one resource, and doubts a relist that lacks most
//! objects.

use std::time::Duration;

use rustc_hash::FxHashMap;
use topology_core::model::ObjectName;

use crate::object::{Kind, ObjectKey};
use crate::source::ObjectState;

#[derive(Debug, Default)]
pub(super) struct KnownObjects {
    objects: FxHashMap<ObjectName, Entry>,
    /// The number of the current list, or of the last list between lists.
    list: u32,
    listed: bool,
    /// Whether a list is under way.
    reading: bool,
    /// The number of the last list that was believed.
    believed: u32,
    /// Whether any list has ended; stays after [`KnownObjects::unlist`].
    was_listed: bool,
    doubt: Option<ListDoubt>,
}

/// A relist that lacked more than half of the known objects.
#[derive(Debug, Clone, Copy)]
struct ListDoubt {
    list: u32,
    /// When the list ended.
    since: Duration,
    missing: usize,
}

/// How long the objects that a doubtful list lacks stay at least.
pub(super) const CONFIRM: Duration = Duration::from_secs(60);

#[derive(Debug, Clone, Copy)]
struct Entry {
    /// The state in the last `Apply` or `Ignore` event, if there was one.
    reported: Option<ObjectState>,
    /// Whether a `Keep` event followed it.
    kept: bool,
    /// [`KnownObjects::list`] when the object was last received.
    list: u32,
    /// [`KnownObjects::list`] when the object became known.
    first_list: u32,
}

/// Whether `list` was read before `other`; the numbers wrap.
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

    /// Whether a list has ended since [`unlist`](Self::unlist).
    pub(super) fn is_listed(&self) -> bool {
        self.listed
    }

    /// Whether exactly the objects of the last list are known, with the changes since.
    pub(super) fn is_settled(&self) -> bool {
        !self.reading && self.doubt.is_none()
    }

    pub(super) fn begin(&mut self) {
        self.list = self.list.wrapping_add(1);
        self.reading = true;
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &ObjectName> {
        self.objects.keys()
    }

    /// Treats the objects that match as named by the current list.
    pub(super) fn mark_named(&mut self, matches: impl Fn(&ObjectName) -> bool) {
        let list = self.list;
        let named = self.objects.iter_mut().filter(|(name, _)| matches(name));
        named.for_each(|(_, entry)| entry.list = list);
    }

    /// Requires another list before the resource counts as listed.
    pub(super) fn unlist(&mut self) {
        self.listed = false;
    }

    /// Ends a list. Removes the objects that it did not name, and returns them, sorted by name.
    ///
    /// With `now` (of a monotonic clock), doubts a relist that lacks more than half of the known
    /// objects: an empty etcd or the API server of another cluster sends such a list. The missing
    /// objects stay until a list that ends at least [`CONFIRM`] later lacks them too. Objects that
    /// only doubtful lists named do not count as known, because another cluster may have sent them.
    pub(super) fn end(&mut self, kind: Kind, now: Option<Duration>) -> Vec<ObjectKey> {
        let again = std::mem::replace(&mut self.was_listed, true);
        (self.listed, self.reading) = (true, false);
        let (list, believed) = (self.list, self.believed);
        let doubt = now.filter(|_| again).and_then(|now| {
            let missing = self.missing(list, |entry| !is_before(believed, entry.first_list))?;
            let new = ListDoubt {
                list,
                since: now,
                missing,
            };
            Some((now, new))
        });
        match doubt {
            None => self.believe(kind),
            Some((now, new)) => self.doubt_or_confirm(kind, now, new),
        }
    }

    /// Removes the objects that the current list did not name.
    fn believe(&mut self, kind: Kind) -> Vec<ObjectKey> {
        self.doubt = None;
        self.believed = self.list;
        let list = self.list;
        self.remove_matching(kind, |entry| entry.list != list)
    }

    /// Doubts the current list. If the first doubtful list ended [`CONFIRM`] ago, removes the
    /// objects that both lack.
    fn doubt_or_confirm(&mut self, kind: Kind, now: Duration, new: ListDoubt) -> Vec<ObjectKey> {
        let doubt = *self.doubt.get_or_insert(new);
        if now < doubt.since + CONFIRM {
            return Vec::new();
        }
        let is_unseen = |entry: &Entry| is_before(entry.list, doubt.list);
        let was_there =
            |entry: &Entry| !is_unseen(entry) && !is_before(doubt.list, entry.first_list);
        let Some(missing) = self.missing(self.list, was_there) else {
            return self.believe(kind);
        };
        // The current list lacks most objects of the first one, so the two do not agree.
        self.believed = doubt.list;
        self.doubt = Some(ListDoubt { missing, ..new });
        self.remove_matching(kind, is_unseen)
    }

    /// When another list may confirm the doubtful list, and how many objects are missing.
    pub(super) fn doubt(&self) -> Option<(Duration, usize)> {
        let doubt = self.doubt?;
        Some((doubt.since + CONFIRM, doubt.missing))
    }

    /// How many of the objects that match `list` did not name, if it is more than half of them.
    fn missing(&self, list: u32, matches: impl Fn(&Entry) -> bool) -> Option<usize> {
        let matching = self.objects.values().filter(|entry| matches(entry));
        let (mut known, mut missing) = (0, 0);
        for entry in matching {
            known += 1;
            missing += usize::from(entry.list != list);
        }
        (missing * 2 > known).then_some(missing)
    }

    fn remove_matching(&mut self, kind: Kind, matches: impl Fn(&Entry) -> bool) -> Vec<ObjectKey> {
        let gone = self.objects.extract_if(|_, entry| matches(entry));
        let mut gone: Vec<ObjectKey> = gone.map(|(name, _)| ObjectKey { kind, name }).collect();
        gone.sort_unstable();
        gone
    }

    /// Records the state of an object. Returns whether the state changed.
    pub(super) fn put(&mut self, key: &ObjectKey, state: ObjectState) -> bool {
        let new = Entry {
            reported: None,
            kept: false,
            list: self.list,
            first_list: self.list,
        };
        let entry = match self.objects.get_mut(&key.name) {
            Some(entry) => entry,
            None => self.objects.entry(key.name.clone()).or_insert(new),
        };
        entry.list = self.list;
        if state == ObjectState::Invalid {
            return !std::mem::replace(&mut entry.kept, true);
        }
        entry.kept = false;
        entry.reported.replace(state) != Some(state)
    }

    /// Whether a valid version of the object was reported and is in use.
    pub(super) fn was_good(&self, name: &ObjectName) -> bool {
        let entry = self.objects.get(name);
        entry.is_some_and(|entry| matches!(entry.reported, Some(ObjectState::Good(_))))
    }

    pub(super) fn remove(&mut self, name: &ObjectName) -> bool {
        self.objects.remove(name).is_some()
    }
}
