//! Reads files into the catalog: the new content of a file replaces its old content.

use std::collections::BTreeSet;
use std::sync::Arc;

use rustc_hash::FxHashSet;

use super::entry::Occurrence;
use super::files::{BATCH, File, Files};
use super::objects::Update;
use super::store::Catalog;
use crate::event::{Batch, Event};
use crate::object::ObjectKey;
use crate::source::parse::{Claim, ObjectState, ParsedObject};
use crate::source::text::Text;
use crate::warning::Warning;

impl Catalog {
    /// Reads one file and stores its objects. With `whole`, parses the unchanged parts, too.
    pub(super) fn read_file(
        &mut self,
        name: &Arc<str>,
        files: &mut impl Files,
        whole: bool,
        update: &mut Update,
    ) {
        let mut file = self.files.remove(name).unwrap_or_default();
        let before: Vec<Claim> = file.claims().collect();
        if whole {
            file.text = Text::default();
            file.held.clone_from(&before);
        }
        let result = files.read(name, &file.text, &mut |found| {
            update.objects.put(name, found);
        });
        self.settle(name, file, &before, result, update);
    }

    /// Reads a new file and sends its objects while reading.
    pub(super) fn read_first(
        &mut self,
        name: &Arc<str>,
        files: &mut impl Files,
        update: &mut Update,
        send: &mut dyn FnMut(Batch),
    ) {
        let mut events: Vec<Event> = Vec::new();
        let mut taken = 0;
        let mut take = |found: ParsedObject| {
            taken += 1;
            let ParsedObject {
                key,
                line,
                fingerprint,
                object,
            } = found;
            let place = Occurrence {
                file: Arc::clone(name),
                line,
                state: ObjectState::Good(fingerprint),
            };
            events.extend(
                self.entries
                    .entry(key)
                    .or_default()
                    .put_and_report(place, object),
            );
            if events.len() >= BATCH {
                send(Batch {
                    events: std::mem::take(&mut events),
                    reports: Vec::new(),
                });
            }
        };
        let result = files.read(name, &Text::default(), &mut take);
        if !events.is_empty() {
            send(Batch {
                events,
                reports: Vec::new(),
            });
        }
        let file = File::default();
        let is_all = result.as_ref().is_ok_and(|text| {
            text.as_ref()
                .is_some_and(|text| text.good_claims() == taken)
        });
        let before = if is_all {
            Vec::new()
        } else {
            self.claimed_by(name)
        };
        self.settle(name, file, &before, result, update);
    }

    /// Stores the result of reading a file that defined the objects in `before`.
    fn settle(
        &mut self,
        name: &Arc<str>,
        mut file: File,
        before: &[Claim],
        result: Result<Option<Text>, Warning>,
        update: &mut Update,
    ) {
        update.to_report.insert(Arc::clone(name));
        let text = result.as_ref().ok().and_then(Option::as_ref);
        match text.and_then(Text::usable_at) {
            Some(at) => drop(self.early.insert(Arc::clone(name), at)),
            None => drop(self.early.remove(name)),
        }
        match result {
            Ok(None) => return self.replace_claims(name, before, [], update),
            Ok(Some(text)) => {
                let held = if text.has_unknown() && file.was_read {
                    gone(before, &text)
                } else {
                    Vec::new()
                };
                file = File {
                    text,
                    was_read: true,
                    refused: None,
                    held,
                };
                self.replace_claims(name, before, file.claims(), update);
            }
            Err(warning) => {
                if !file.was_read {
                    self.replace_claims(name, before, [], update);
                }
                file.refused = Some(Box::new(warning));
            }
        }
        self.files.insert(Arc::clone(name), file);
    }

    /// Reads the files again whose objects are needed and were not read: after the last definition
    /// of an object is removed, the one before it is used, and its content was not kept.
    pub(super) fn read_absent(&mut self, files: &mut impl Files, update: &mut Update) {
        let mut read_again = BTreeSet::new();
        loop {
            let mut absent = self.absent(update);
            absent.retain(|file| read_again.insert(Arc::clone(file)));
            if absent.is_empty() {
                return;
            }
            for file in absent {
                self.read_file(&file, files, true, update);
            }
        }
    }

    fn absent(&self, update: &Update) -> BTreeSet<Arc<str>> {
        let needed = update.touched.iter().filter_map(|key| {
            let entry = self.entries.get(key)?;
            let place = entry.places.last()?;
            let ObjectState::Good(fingerprint) = place.state else {
                return None;
            };
            let is_here = update.objects.fingerprint(key) == Some(fingerprint);
            (entry.needs_content() && !is_here).then(|| Arc::clone(&place.file))
        });
        needed.collect()
    }

    /// Replaces the definitions in a file.
    fn replace_claims(
        &mut self,
        name: &Arc<str>,
        before: &[Claim],
        now: impl IntoIterator<Item = Claim>,
        update: &mut Update,
    ) {
        let mut gone: FxHashSet<&ObjectKey> = before.iter().map(|claim| &claim.key).collect();
        for claim in now {
            gone.remove(&claim.key);
            self.put_claim(name, claim, update);
        }
        for key in gone {
            let Some(entry) = self.entries.get_mut(key) else {
                continue;
            };
            entry.leave(name);
            if !entry.places.is_empty() {
                update.shared.insert(key.clone());
            }
            update.touched.insert(key.clone());
        }
    }

    /// Stores one definition in a file.
    fn put_claim(&mut self, name: &Arc<str>, claim: Claim, update: &mut Update) {
        let Claim { key, line, state } = claim;
        let entry = self.entries.entry(key.clone()).or_default();
        entry.put(Occurrence {
            file: Arc::clone(name),
            line,
            state,
        });
        if entry.places.len() > 1 {
            update.shared.insert(key.clone());
        }
        if entry.is_news() {
            update.touched.insert(key);
        }
    }

    /// Finds the definitions in a file whose text is not known, by a search of all objects.
    fn claimed_by(&self, name: &Arc<str>) -> Vec<Claim> {
        let claims = self.entries.iter().filter_map(|(key, entry)| {
            let place = entry.place(name)?;
            Some(Claim {
                key: key.clone(),
                line: place.line,
                state: place.state,
            })
        });
        claims.collect()
    }
}

/// The objects that are in `before` and not in `text`.
fn gone(before: &[Claim], text: &Text) -> Vec<Claim> {
    let now: FxHashSet<&ObjectKey> = text.keys().collect();
    let gone = before.iter().filter(|claim| !now.contains(&claim.key));
    gone.cloned().collect()
}
