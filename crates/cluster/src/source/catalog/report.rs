//! What is to be said about one file, put together from its own warnings and its neighbours'.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::{Catalog, File};
use crate::event::FileReport;
use crate::object::ObjectKey;
use crate::source::parse::{Claim, State};
use crate::warning::Warning;

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
    fn report(&self, name: &Arc<str>) -> FileReport {
        let Some(file) = self.files.get(name) else {
            return FileReport::empty(name);
        };
        let mut warnings: Vec<Warning> = file.text.warnings().collect();
        warnings.extend(file.refused.as_deref().cloned());
        let lost = self.contested.iter().filter_map(|key| self.lost(name, key));
        let repeats = file.text.repeats(name).into_iter().chain(lost);
        warnings.extend(some(repeats, name));
        warnings.extend(file.held.iter().map(|claim| held(name, claim, file)));
        warnings.extend(file.claims().filter_map(|claim| self.stays(name, &claim)));
        warnings.sort_by_key(|warning| warning.line);
        FileReport {
            file: Arc::clone(name),
            warnings,
            skipped: file.text.skipped(),
        }
    }

    /// That an object which cannot be used any more stays as it was.
    fn stays(&self, file: &Arc<str>, claim: &Claim) -> Option<Warning> {
        let told = self.entries.get(&claim.key)?.told;
        if claim.state != State::Invalid || !matches!(told, Some(State::Good(_))) {
            return None;
        }
        Some(last_good_stays(file, claim.line, &claim.key))
    }

    /// That another file writes the object too, and counts.
    fn lost(&self, file: &Arc<str>, key: &ObjectKey) -> Option<Warning> {
        let places = &self.entries.get(key)?.places;
        let winner = places.last().filter(|winner| winner.file != *file)?;
        let here = places.iter().find(|place| place.file == *file)?;
        let place = format!("{}:{}", winner.file, winner.line);
        Some(repeated(key, file, here.line, &place))
    }
}

/// How many objects of a file are named that are written again.
const NAMED: usize = 20;

/// The first warnings of many that are alike, and how many more there are.
fn some(mut all: impl Iterator<Item = Warning>, file: &Arc<str>) -> Vec<Warning> {
    let mut warnings: Vec<Warning> = all.by_ref().take(NAMED).collect();
    let more = all.count();
    if more > 0 {
        let message = format!("{more} more objects are written again");
        warnings.push(Warning::of_file(file, 0, message, "remove one of each two"));
    }
    warnings
}

/// That an object cannot be used as it is now and stays as it was.
pub(crate) fn last_good_stays(file: &Arc<str>, line: u32, key: &ObjectKey) -> Warning {
    let message = "cannot be used as it is now; its last good version stays in use";
    Warning::of_object(file, line, key, message, "see the other warnings about it")
}

/// That the object is written again at `winner`, which counts.
pub(crate) fn repeated(key: &ObjectKey, file: &Arc<str>, line: u32, winner: &str) -> Warning {
    let message = format!("written again at {winner}, which comes later and counts");
    Warning::of_object(file, line, key, message, "remove one of the two")
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
