//! Collects the warnings about one file, its own and those about objects that are in other files, too.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::files::File;
use super::store::Catalog;
use crate::event::FileReport;
use crate::source::object_warnings::{last_good_stays, repeated};
use crate::source::parse::{Claim, ObjectState};
use crate::warning::{Code, Warning};

impl Catalog {
    /// The reports on files, without those that have nothing to say as before.
    pub(super) fn reports(&mut self, files: BTreeSet<Arc<str>>) -> Vec<FileReport> {
        let mut reports = Vec::new();
        for file in files {
            let report = self.report(&file);
            let is_empty = report.warnings.is_empty() && report.skipped.is_empty();
            let was_empty = if is_empty {
                !self.remarkable.remove(&file)
            } else {
                self.remarkable.insert(file)
            };
            if !(is_empty && was_empty) {
                reports.push(report);
            }
        }
        reports
    }

    /// The report on a file; an empty one when the file does not exist (any more).
    fn report(&mut self, name: &Arc<str>) -> FileReport {
        self.named.remove(name);
        let Some(file) = self.files.get(name) else {
            return FileReport::empty(name);
        };
        let mut warnings: Vec<Warning> = file.text.warnings().collect();
        warnings.extend(file.refused.as_deref().cloned());
        let lost = file.claims().filter_map(|claim| self.lost(name, &claim));
        let repeats = file.text.repeats(name).into_iter().chain(lost);
        let left = NAMED_IN_ALL.saturating_sub(self.named.values().sum());
        let (repeats, named) = some(repeats, left.min(NAMED), name);
        warnings.extend(repeats);
        warnings.extend(file.held.iter().map(|claim| held(name, claim, file)));
        warnings.extend(file.claims().filter_map(|claim| self.stays(name, &claim)));
        warnings.sort_by_key(|warning| warning.line);
        let skipped = file.text.skipped();
        if named > 0 {
            self.named.insert(Arc::clone(name), named);
        }
        FileReport {
            file: Arc::clone(name),
            warnings,
            skipped,
        }
    }

    /// That an object which cannot be used any more stays as it was.
    fn stays(&self, file: &Arc<str>, claim: &Claim) -> Option<Warning> {
        let reported = self.entries.get(&claim.key)?.reported;
        if claim.state != ObjectState::Invalid || !matches!(reported, Some(ObjectState::Good(_))) {
            return None;
        }
        Some(last_good_stays(file, claim.line, &claim.key))
    }

    /// That another file writes the object too, and counts.
    fn lost(&self, file: &Arc<str>, claim: &Claim) -> Option<Warning> {
        let entry = self.entries.get(&claim.key)?;
        let winner = entry.places.last().filter(|winner| winner.file != *file)?;
        let here = entry.place(file)?;
        let place = format!("{}:{}", winner.file, winner.line);
        Some(repeated(&claim.key, file, here.line, &place))
    }
}

/// How many objects of a file are named that are written again.
const NAMED: usize = 20;

/// How many are named of all files.
const NAMED_IN_ALL: usize = 100;

/// The first warnings of many that are alike, and how many more there are; and how many of them name an object.
fn some(
    mut all: impl Iterator<Item = Warning>,
    most: usize,
    file: &Arc<str>,
) -> (Vec<Warning>, usize) {
    let mut warnings: Vec<Warning> = all.by_ref().take(most).collect();
    let named = warnings.len();
    let more = all.count();
    if more > 0 {
        let message = match more {
            1 => "one more object is written again".to_owned(),
            more => format!("{more} more objects are written again"),
        };
        warnings.push(Warning {
            code: Code::Object,
            ..Warning::of_file(file, 0, message, "remove one of each two")
        });
    }
    (warnings, named)
}

/// That an object has gone from the file and is kept all the same.
fn held(name: &Arc<str>, claim: &Claim, file: &File) -> Warning {
    let why = if file.refused.is_some() {
        "the file cannot be read"
    } else {
        "something in the file has no kind or no name and may be what is left of it"
    };
    let message = format!("not in the file any more, but kept: {why}");
    Warning::of_object(name, 0, &claim.key, message, "complete the file")
}
