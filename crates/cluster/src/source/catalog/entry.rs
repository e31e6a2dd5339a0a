//! What is known of one object: who writes it, and what was told of it.

use std::sync::Arc;

use super::reading::Objects;
use crate::event::Event;
use crate::object::{Object, ObjectKey};
use crate::source::parse::State;

/// What is known of one object.
#[derive(Debug, Default)]
pub(super) struct Entry {
    /// Which files write it, in the order of paths. The last one counts.
    pub(super) places: Vec<Occurrence>,
    /// What the last `Apply` or `Ignore` said.
    pub(super) told: Option<State>,
    /// Whether a `Keep` came after it.
    pub(super) kept: bool,
}

#[derive(Debug)]
pub(super) struct Occurrence {
    pub(super) file: Arc<str>,
    pub(super) line: u32,
    pub(super) state: State,
}

impl Entry {
    /// Puts a file's word in its place.
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

    /// Puts a file's word in its place, and says at once what it says if it counts and is news.
    pub(super) fn put_and_tell(&mut self, place: Occurrence, object: Object) -> Option<Event> {
        let state = place.state;
        self.put(place);
        if !self.is_news() || self.places.last()?.state != state {
            return None;
        }
        self.told = Some(state);
        self.kept = false;
        Some(Event::Apply(object))
    }

    /// Where a file writes the object.
    pub(super) fn place(&self, file: &str) -> Option<&Occurrence> {
        let at = self
            .places
            .binary_search_by(|other| (*other.file).cmp(file));
        self.places.get(at.ok()?)
    }

    /// A file does not write the object any more.
    pub(super) fn leave(&mut self, file: &str) {
        if let Ok(at) = self
            .places
            .binary_search_by(|other| (*other.file).cmp(file))
        {
            self.places.remove(at);
        }
    }

    /// The files that write the object.
    pub(super) fn files(&self) -> impl Iterator<Item = Arc<str>> {
        self.places.iter().map(|place| Arc::clone(&place.file))
    }

    /// Whether what counts now was not told, so that its content is needed.
    pub(super) fn needs_content(&self) -> bool {
        self.told != self.places.last().map(|place| place.state)
    }

    /// Whether what counts now is not what was told.
    pub(super) fn is_news(&self) -> bool {
        match self.places.last().map(|place| place.state) {
            None => true,
            Some(State::Invalid) => !self.kept,
            Some(state) => self.told != Some(state) || self.kept,
        }
    }

    /// The event that says what counts now, if it is news.
    pub(super) fn tell(&mut self, key: ObjectKey, objects: &mut Objects) -> Option<Event> {
        let state = self.places.last()?.state;
        match state {
            State::Invalid => {
                let first = !std::mem::replace(&mut self.kept, true);
                first.then_some(Event::Keep(key))
            }
            State::Ignored(reason) if self.told != Some(state) => {
                self.told = Some(state);
                self.kept = false;
                Some(Event::Ignore(key, reason))
            }
            State::Good(wanted) if self.told != Some(state) => {
                let object = objects.take(&key, wanted)?;
                self.told = Some(state);
                self.kept = false;
                Some(Event::Apply(object))
            }
            State::Good(_) | State::Ignored(_) => {
                self.kept = false;
                None
            }
        }
    }
}
