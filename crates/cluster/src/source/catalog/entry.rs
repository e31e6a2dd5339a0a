//! Holds the state of one object: the files that define it, and the version that was reported.

use std::sync::Arc;

use super::objects::Objects;
use crate::event::Event;
use crate::object::{Object, ObjectKey};
use crate::source::parse::ObjectState;

/// The state of one object.
#[derive(Debug, Default)]
pub(super) struct Entry {
    /// The files that define it, in the order of paths. The last one is used.
    pub(super) places: Vec<Occurrence>,
    /// The state in the last `Apply` or `Ignore`.
    pub(super) reported: Option<ObjectState>,
    /// Whether a `Keep` was sent after it.
    pub(super) kept: bool,
}

#[derive(Debug)]
pub(super) struct Occurrence {
    pub(super) file: Arc<str>,
    pub(super) line: u32,
    pub(super) state: ObjectState,
}

impl Entry {
    /// Stores the version of a file.
    pub(super) fn put(&mut self, place: Occurrence) {
        match self
            .places
            .binary_search_by(|other| other.file.cmp(&place.file))
        {
            Ok(at) => {
                if let Some(old) = self.places.get_mut(at) {
                    *old = place;
                }
            }
            Err(at) => {
                if self.places.is_empty() {
                    self.places.reserve_exact(1);
                }
                self.places.insert(at, place);
            }
        }
    }

    /// Stores the version of a file. Returns an event if this version is used and is new.
    pub(super) fn put_and_report(&mut self, place: Occurrence, object: Object) -> Option<Event> {
        let state = place.state;
        self.put(place);
        if !self.is_news() || self.places.last()?.state != state {
            return None;
        }
        self.reported = Some(state);
        self.kept = false;
        Some(Event::Apply(object))
    }

    /// Where `file` defines the object.
    pub(super) fn place(&self, file: &str) -> Option<&Occurrence> {
        let at = self
            .places
            .binary_search_by(|other| (*other.file).cmp(file));
        self.places.get(at.ok()?)
    }

    /// Removes the version of a file.
    pub(super) fn leave(&mut self, file: &str) {
        if let Ok(at) = self
            .places
            .binary_search_by(|other| (*other.file).cmp(file))
        {
            self.places.remove(at);
        }
    }

    pub(super) fn files(&self) -> impl Iterator<Item = Arc<str>> {
        self.places.iter().map(|place| Arc::clone(&place.file))
    }

    /// Whether the version in use was not reported, so that its content is needed.
    pub(super) fn needs_content(&self) -> bool {
        self.reported != self.places.last().map(|place| place.state)
    }

    /// Whether the version in use differs from the reported one.
    pub(super) fn is_news(&self) -> bool {
        match self.places.last().map(|place| place.state) {
            None => true,
            Some(ObjectState::Invalid) => !self.kept,
            Some(state) => self.reported != Some(state) || self.kept,
        }
    }

    /// The event for the version in use, if it is new.
    pub(super) fn report(&mut self, key: ObjectKey, objects: &mut Objects) -> Option<Event> {
        let state = self.places.last()?.state;
        match state {
            ObjectState::Invalid => {
                let first = !std::mem::replace(&mut self.kept, true);
                first.then_some(Event::Keep(key))
            }
            ObjectState::Ignored(reason) if self.reported != Some(state) => {
                self.reported = Some(state);
                self.kept = false;
                Some(Event::Ignore(key, reason))
            }
            ObjectState::Good(fingerprint) if self.reported != Some(state) => {
                let object = objects.take(&key, fingerprint)?;
                self.reported = Some(state);
                self.kept = false;
                Some(Event::Apply(object))
            }
            ObjectState::Good(_) | ObjectState::Ignored(_) => {
                self.kept = false;
                None
            }
        }
    }
}
