//! Which file says what, and what was told of it so far: changed files in, events out.
//!
//! The catalog remembers a fingerprint of every object, not the object, so that a file of 10,000
//! Services of which one changed gives one event.
//!
//! Three rules decide what becomes of an object:
//! - Of an object written in several files, the one in the last file by path counts, as with
//!   `kubectl apply -f folder`.
//! - An object that was good and is not any more stays as it was.
//! - A file that cannot be parsed changes nothing, and while a file holds something that nobody
//!   can name (no kind, no name), nothing that was in the file before counts as deleted: half a
//!   file is often valid YAML.

mod entry;
mod report;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::parse::{Claim, State};
use super::text::{Objects, Text};
use crate::event::{Completeness, Event, FileReport};
use crate::object::ObjectKey;
use crate::warning::Warning;

pub(crate) use report::repeated;

use entry::{Entry, Place};

/// Where files are read from; a trait so that the rules can be tried without a disk.
pub(crate) trait Files {
    /// Reads a file, taking what did not change from `known`. `Ok(None)` when it does not exist.
    fn read(
        &mut self,
        file: &Arc<str>,
        known: &Text,
        objects: &mut Objects,
    ) -> Result<Option<Text>, Warning>;
}

/// All files and what they said.
#[derive(Debug, Default)]
pub(crate) struct Catalog {
    files: BTreeMap<Arc<str>, File>,
    /// Every object that some file writes or that is still to be taken back.
    entries: FxHashMap<ObjectKey, Entry>,
    /// The objects that more than one file writes.
    contested: BTreeSet<ObjectKey>,
    /// The files about which the last report had something to say.
    remarkable: BTreeSet<Arc<str>>,
}

/// What is known of one file.
#[derive(Debug, Default)]
struct File {
    text: Text,
    /// Whether any content of the file was ever read.
    was_read: bool,
    /// Why the file's present content is not used.
    refused: Option<Warning>,
    /// Objects that have gone from the file while it held something nobody can name.
    held: Vec<Claim>,
}

/// What came of an update.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Changes {
    /// In the order of kinds and names.
    pub(crate) events: Vec<Event>,
    /// The reports of the files that were read or are affected.
    pub(crate) reports: Vec<FileReport>,
}

/// What an update has brought so far.
#[derive(Default)]
struct Update {
    objects: Objects,
    /// Objects that may have changed.
    touched: BTreeSet<ObjectKey>,
    /// Files whose report may have changed.
    to_report: BTreeSet<Arc<str>>,
}

impl Catalog {
    /// Reads the files named and says what changed since the last time.
    pub(crate) fn update(
        &mut self,
        changed: BTreeSet<Arc<str>>,
        files: &mut impl Files,
    ) -> Changes {
        let mut update = Update::default();
        for file in changed {
            self.read_file(&file, files, false, &mut update);
        }
        let mut read_anew = BTreeSet::new();
        loop {
            let mut absent = self.absent(&update);
            absent.retain(|file| read_anew.insert(Arc::clone(file)));
            if absent.is_empty() {
                break;
            }
            for file in absent {
                self.read_file(&file, files, true, &mut update);
            }
        }
        let events = self.events(&mut update);
        Changes {
            events,
            reports: self.reports(update.to_report),
        }
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

    /// Reads one file (`anew`: every part of it) and puts its claims in the place of those it had.
    fn read_file(
        &mut self,
        name: &Arc<str>,
        files: &mut impl Files,
        anew: bool,
        update: &mut Update,
    ) {
        update.to_report.insert(Arc::clone(name));
        let mut file = self.files.remove(name).unwrap_or_default();
        let before: Vec<Claim> = file.claims().collect();
        if anew {
            file.text = Text::default();
        }
        match files.read(name, &file.text, &mut update.objects) {
            Err(warning) => {
                // What was known of the file stays claimed, even where its text is forgotten.
                file.held = if anew { before } else { file.held };
                file.refused = Some(warning);
                self.files.insert(Arc::clone(name), file);
            }
            Ok(None) => self.replace_claims(name, &before, &[], update),
            Ok(Some(text)) => {
                let mut claims = text.last_claims();
                let held = if text.has_unknown() {
                    gone(&before, &claims)
                } else {
                    Vec::new()
                };
                claims.extend(held.iter().cloned());
                self.replace_claims(name, &before, &claims, update);
                self.files.insert(
                    Arc::clone(name),
                    File {
                        text,
                        was_read: true,
                        refused: None,
                        held,
                    },
                );
            }
        }
    }

    fn replace_claims(
        &mut self,
        name: &Arc<str>,
        before: &[Claim],
        now: &[Claim],
        update: &mut Update,
    ) {
        for Claim { key, line, state } in now {
            let place = Place {
                file: Arc::clone(name),
                line: *line,
                state: *state,
            };
            let entry = self.entries.entry(key.clone()).or_default();
            entry.put(place);
            if entry.is_news() {
                update.touched.insert(key.clone());
            }
            if entry.places.len() > 1 {
                self.contested.insert(key.clone());
                update
                    .to_report
                    .extend(entry.places.iter().map(|place| Arc::clone(&place.file)));
            }
        }
        for key in gone(before, now).into_iter().map(|claim| claim.key) {
            let Some(entry) = self.entries.get_mut(&key) else {
                continue;
            };
            update
                .to_report
                .extend(entry.places.iter().map(|place| Arc::clone(&place.file)));
            entry.places.retain(|place| place.file != *name);
            if entry.places.len() < 2 {
                self.contested.remove(&key);
            }
            update.touched.insert(key);
        }
        update.to_report.insert(Arc::clone(name));
    }

    /// The files in which an object now counts whose content was not delivered: after the last
    /// copy of an object has gone, the one before it counts, and nobody remembers its content.
    fn absent(&self, update: &Update) -> BTreeSet<Arc<str>> {
        let needed = update.touched.iter().filter_map(|key| {
            let entry = self.entries.get(key)?;
            let place = entry.places.last()?;
            let State::Good(wanted) = place.state else {
                return None;
            };
            let delivered = update.objects.fingerprint(key) == Some(wanted);
            (entry.is_news() && !delivered).then(|| Arc::clone(&place.file))
        });
        needed.collect()
    }

    fn events(&mut self, update: &mut Update) -> Vec<Event> {
        let mut events = Vec::new();
        for key in std::mem::take(&mut update.touched) {
            let Some(entry) = self.entries.get_mut(&key) else {
                continue;
            };
            if entry.places.is_empty() {
                if entry.told.is_some() || entry.kept {
                    events.push(Event::Delete(key.clone()));
                }
                self.entries.remove(&key);
            } else {
                events.extend(entry.tell(key, &mut update.objects));
            }
        }
        events
    }
}

impl File {
    /// What the file claims, with what is held of an earlier content.
    fn claims(&self) -> impl Iterator<Item = Claim> + '_ {
        self.text
            .last_claims()
            .into_iter()
            .chain(self.held.iter().cloned())
    }
}

/// What is in `before` and not in `now`.
fn gone(before: &[Claim], now: &[Claim]) -> Vec<Claim> {
    let now: FxHashSet<&ObjectKey> = now.iter().map(|claim| &claim.key).collect();
    before
        .iter()
        .filter(|claim| !now.contains(&claim.key))
        .cloned()
        .collect()
}
