//! Compares changed files with their last state, and sends the difference as events.
//!
//! The catalog keeps a fingerprint of every object, not the object. If one of 10,000 Services in a
//! file changes, it sends one event.
//!
//! Three rules apply to objects:
//! - If several files define an object, the last file by path is used, as with
//!   `kubectl apply -f folder`.
//! - An object that becomes invalid stays as it was.
//! - A file that cannot be parsed changes nothing. While a file has an object without a kind or
//!   name, no object of its earlier content is deleted, because half a file is often valid YAML.

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
    /// Reads the `changed` files and sends the difference from the last time.
    ///
    /// Until [`Catalog::list_ended`], sends the objects of a new file while it reads the file, to
    /// hold fewer objects, and deletes them again if the file is broken further down: the receiver
    /// does not act on them yet. After that, compares all files together, so that an object that
    /// moves to another file is not deleted in between.
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
        // In the first list, this would report each file again for every new neighbour.
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

    /// Ends the first list. Returns whether it has every file, and the reports not sent yet.
    pub(crate) fn list_ended(&mut self) -> (Completeness, Vec<FileReport>) {
        self.listed = true;
        let shared = std::mem::take(&mut self.shared);
        let files = self.files_of(&shared);
        (self.completeness(), self.reports(files))
    }

    /// The files that define one of these objects.
    fn files_of(&self, keys: &BTreeSet<ObjectKey>) -> BTreeSet<Arc<str>> {
        let entries = keys.iter().filter_map(|key| self.entries.get(key));
        entries.flat_map(Entry::files).collect()
    }

    /// The next time to read a file again, because one of its objects becomes valid.
    pub(crate) fn due_at(&self) -> Option<i64> {
        self.early.values().min().copied()
    }

    /// The files to read again at `now`.
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

    /// Whether no file could be read.
    pub(crate) fn is_useless(&self) -> bool {
        !self.files.values().any(|file| file.was_read)
    }

    /// File and line of the definition that is used.
    pub(crate) fn place_of(&self, key: &ObjectKey) -> Option<(&Arc<str>, u32)> {
        let place = self.entries.get(key)?.places.last()?;
        Some((&place.file, place.line))
    }

    /// The events for the touched objects, in the order of kinds and names.
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
