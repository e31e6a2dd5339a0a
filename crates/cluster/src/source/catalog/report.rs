//! Collects the warnings about each file, including objects that other files define as well.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::files::File;
use super::store::Catalog;
use crate::event::FileReport;
use crate::source::object_warnings::{last_good_stays, repeated};
use crate::source::parse::{Claim, ObjectState};
use crate::warning::{Code, Warning};

impl Catalog {
    /// The reports on files. An empty report is left out if the last one was empty, too.
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

    /// The report on a file; empty if the file does not exist.
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

    /// Warns that an object is no longer valid, and its last good version stays in use.
    fn stays(&self, file: &Arc<str>, claim: &Claim) -> Option<Warning> {
        let reported = self.entries.get(&claim.key)?.reported;
        if claim.state != ObjectState::Invalid || !matches!(reported, Some(ObjectState::Good(_))) {
            return None;
        }
        Some(last_good_stays(file, claim.line, &claim.key))
    }

    /// Warns that another file defines the object, too, and is used.
    fn lost(&self, file: &Arc<str>, claim: &Claim) -> Option<Warning> {
        let entry = self.entries.get(&claim.key)?;
        let winner = entry.places.last().filter(|winner| winner.file != *file)?;
        let here = entry.place(file)?;
        let place = format!("{}:{}", winner.file, winner.line);
        Some(repeated(&claim.key, file, here.line, &place))
    }
}

/// The largest number of repeated objects that the report on one file names.
const NAMED: usize = 20;

/// The largest number of repeated objects that the reports on all files name together.
const NAMED_IN_ALL: usize = 100;

/// Keeps the first warnings of `all`, and adds one that counts the rest. Also returns the number of
/// warnings that name an object.
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
            1 => "one more object is defined again".to_owned(),
            more => format!("{more} more objects are defined again"),
        };
        warnings.push(Warning {
            code: Code::Object,
            ..Warning::of_file(file, 0, message, "remove one definition of each")
        });
    }
    (warnings, named)
}

/// Warns that an object is no longer in the file, but stays in use.
fn held(name: &Arc<str>, claim: &Claim, file: &File) -> Warning {
    let why = if file.refused.is_some() {
        "the file cannot be read"
    } else {
        "an object in the file has no kind or no name, and may be a part of this one"
    };
    let message = format!("not in the file any more, but kept: {why}");
    Warning::of_object(name, 0, &claim.key, message, "complete the file")
}
