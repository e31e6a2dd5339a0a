//! Compares changed files with what was reported of them before, and returns the difference as events.
//!
//! The catalog remembers a fingerprint of every object, not the object, so that a file of 10,000
//! Services of which one changed gives one event.
//!
//! Three rules decide what becomes of an object:
//! - Of an object written in several files, the one in the last file by path counts, as with
//!   `kubectl apply -f folder`.
//! - An object that was good and is not any more stays as it was.
//! - A file that cannot be parsed changes nothing, and while a file holds an object without a kind or
//!   name, nothing that was in the file before counts as deleted: half a
//!   file is often valid YAML.

mod entry;
mod files;
mod objects;
mod reading;
mod report;
mod store;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::event::{Batch, Completeness, Event, FileReport};
use crate::object::ObjectKey;

pub(crate) use files::Files;
pub(crate) use store::Catalog;

use entry::Entry;
use files::BATCH;
use objects::Update;

impl Catalog {
    /// Reads the files named and sends what changed since the last time.
    ///
    /// Until [`Catalog::list_ended`] the objects of a new file are sent while it is read, and deleted again
    /// if the file turns out to be broken further down: the receiver does not act on them yet, so
    /// they need not be kept. After that the files are compared as one, so that an object that moves from one to
    /// another does not go in between.
    pub(crate) fn update(
        &mut self,
        changed: BTreeSet<Arc<str>>,
        files: &mut impl Files,
        send: &mut dyn FnMut(Batch),
    ) {
        let mut update = Update::default();
        for file in changed {
            if self.listed || self.files.contains_key(&file) {
                self.read_file(&file, files, false, &mut update);
            } else {
                self.read_first(&file, files, &mut update, send);
            }
        }
        self.read_absent(files, &mut update);
        let mut events = self.events(&mut update).into_iter();
        while events.len() > BATCH {
            let events = events.by_ref().take(BATCH).collect();
            send(Batch {
                events,
                reports: Vec::new(),
            });
        }
        // While the first list is read every new file would have all its neighbours looked at again.
        if self.listed {
            let neighbours = self.files_of(&update.shared);
            update.to_report.extend(neighbours);
        } else {
            self.shared.append(&mut update.shared);
        }
        let last = Batch {
            events: events.collect(),
            reports: self.reports(update.to_report),
        };
        if !last.events.is_empty() || !last.reports.is_empty() {
            send(last);
        }
    }

    /// Ends the first list. Returns whether every file was in it, and what is still to be said about files.
    pub(crate) fn list_ended(&mut self) -> (Completeness, Vec<FileReport>) {
        self.listed = true;
        let shared = std::mem::take(&mut self.shared);
        let files = self.files_of(&shared);
        (self.completeness(), self.reports(files))
    }

    /// The files that write one of these objects.
    fn files_of(&self, keys: &BTreeSet<ObjectKey>) -> BTreeSet<Arc<str>> {
        let entries = keys.iter().filter_map(|key| self.entries.get(key));
        entries.flat_map(Entry::files).collect()
    }

    /// When the first file has to be read again because one of its objects can be used then.
    pub(crate) fn due_at(&self) -> Option<i64> {
        self.early.values().min().copied()
    }

    /// The files that have to be read again by `now`.
    pub(crate) fn due(&self, now: i64) -> BTreeSet<Arc<str>> {
        let due = self.early.iter().filter(|(_, at)| **at <= now);
        due.map(|(file, _)| Arc::clone(file)).collect()
    }

    /// Whether every file could be read at least once.
    pub(crate) fn completeness(&self) -> Completeness {
        let whole = self.files.values().all(|file| file.was_read);
        if whole {
            Completeness::Whole
        } else {
            Completeness::Partial
        }
    }

    /// Whether not one file could be read.
    pub(crate) fn is_useless(&self) -> bool {
        !self.files.values().any(|file| file.was_read)
    }

    /// Where the object is written that counts under `key`.
    pub(crate) fn place_of(&self, key: &ObjectKey) -> Option<(&Arc<str>, u32)> {
        let place = self.entries.get(key)?.places.last()?;
        Some((&place.file, place.line))
    }

    /// The events for everything that was touched, in the order of kinds and names.
    fn events(&mut self, update: &mut Update) -> Vec<Event> {
        let mut events = Vec::new();
        for key in std::mem::take(&mut update.touched) {
            let Some(entry) = self.entries.get_mut(&key) else {
                continue;
            };
            if entry.places.is_empty() {
                if entry.reported.is_some() || entry.kept {
                    events.push(Event::Delete(key.clone()));
                }
                self.entries.remove(&key);
            } else {
                events.extend(entry.report(key, &mut update.objects));
            }
        }
        events
    }
}
