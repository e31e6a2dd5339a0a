//! The thread that follows files: turns bursts of file system messages into batches of events.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::Duration;

use tokio::sync::mpsc;

use super::folder_watcher::{FolderWatcher, Meaning};
use super::signal::{self, Burst, Signal};
use crate::convert::Context;
use crate::event::{Batch, Completeness, Event, FileReport};
use crate::source::catalog::Catalog;
use crate::source::disk::Disk;
use crate::source::place::{self, Listing, Stamp};
use crate::warning::Warning;

/// How often to check files whose folder cannot be watched.
const POLL: Duration = Duration::from_secs(5);

/// The shortest and longest wait before files with objects that are too early are read again. The
/// longest is bounded because a clock may be set.
const SOONEST: Duration = Duration::from_millis(100);
const LATEST: Duration = Duration::from_secs(60);

/// Follows one path. Its methods return `None` after the receiver of the batches was dropped.
pub(super) struct FileFollower<'a> {
    given: &'a Path,
    folder_watcher: FolderWatcher,
    batches: mpsc::Sender<Batch>,
    catalog: Catalog,
    disk: Disk,
    /// The existing files, as of their last read.
    stamps: BTreeMap<Arc<str>, Stamp>,
    /// The last `Complete` that was sent.
    completeness: Option<Completeness>,
    /// The last reports on folders and on the path as a whole.
    remarks: BTreeMap<Arc<str>, FileReport>,
    poll: Option<Duration>,
}

impl<'a> FileFollower<'a> {
    pub(super) fn new(
        given: &'a Path,
        context: Context,
        folder_watcher: FolderWatcher,
        batches: mpsc::Sender<Batch>,
    ) -> Self {
        Self {
            given,
            folder_watcher,
            batches,
            catalog: Catalog::default(),
            disk: Disk::new(context),
            stamps: BTreeMap::new(),
            completeness: None,
            remarks: BTreeMap::new(),
            poll: None,
        }
    }

    /// Reads everything, then follows the changes.
    pub(super) fn run(&mut self, signals: &Receiver<Signal>) -> Option<()> {
        self.send(Event::Begin.into())?;
        self.look_at_all()?;
        while let Some(burst) = signal::burst(signals, self.longest_wait(), |path| {
            self.meaning(path) != Meaning::Nothing
        }) {
            self.follow(burst)?;
            self.read_due()?;
            self.disk.sweep();
        }
        None
    }

    /// The longest wait for a message, if a folder cannot be watched or an object becomes valid.
    fn longest_wait(&self) -> Option<Duration> {
        let due = self.catalog.due_at().zip(self.disk.now());
        let due = due.map(|(at, now)| {
            let left = Duration::from_millis(u64::try_from(at.saturating_sub(now)).unwrap_or(0));
            left.clamp(SOONEST, LATEST)
        });
        self.poll.into_iter().chain(due).min()
    }

    /// Reads the files again in which an object that was too early is valid now.
    fn read_due(&mut self) -> Option<()> {
        let due = self.disk.now().map(|now| self.catalog.due(now));
        match due {
            Some(due) if !due.is_empty() => self.read_together(due),
            _ => Some(()),
        }
    }

    fn meaning(&self, path: &Path) -> Meaning {
        let is_known = |name: &str| self.stamps.contains_key(name);
        self.folder_watcher.meaning(path, is_known)
    }

    fn follow(&mut self, burst: Burst) -> Option<()> {
        let mut names = BTreeSet::new();
        let mut all = burst.lost;
        for path in burst.paths {
            match self.meaning(&path) {
                Meaning::File(name) => drop(names.insert(name)),
                Meaning::Listing => all = true,
                Meaning::Nothing => {}
            }
        }
        if all {
            return self.look_at_all();
        }
        let now = names.into_iter().map(|name| {
            let stamp = Stamp::at(Path::new(&*name));
            (name, stamp)
        });
        let changed = self.note(now.collect());
        self.read(changed)?;
        self.complete()
    }

    /// Lists the files and reads those that changed.
    fn look_at_all(&mut self) -> Option<()> {
        let mut warnings = self.folder_watcher.watch_surroundings();
        let listing = match self.list(&mut warnings) {
            Ok(listing) => listing,
            Err(error) => {
                warnings.push(self.missing(&error));
                if self.given_was_a_folder() {
                    return self.remark(warnings);
                }
                Listing::default()
            }
        };
        self.poll = (!warnings.is_empty()).then_some(POLL);
        warnings.extend(listing.warnings);
        if listing.files.is_empty() && self.completeness.is_none() && warnings.is_empty() {
            let message =
                "no file in this folder ends in .yaml, .yml or .json yet; waiting for a file";
            warnings.push(Warning::of_file(
                &self.given_name(),
                0,
                message,
                "add a file",
            ));
        }
        self.remark(warnings)?;
        let gone = self
            .stamps
            .keys()
            .filter(|name| !listing.files.contains_key(*name));
        let mut now: BTreeMap<Arc<str>, Option<Stamp>> =
            gone.map(|name| (Arc::clone(name), None)).collect();
        now.extend(
            listing
                .files
                .into_iter()
                .map(|(name, stamp)| (name, Some(stamp))),
        );
        let changed = self.note(now);
        self.read(changed)?;
        self.complete()
    }

    /// Lists again until every folder was watched before it was listed.
    fn list(&mut self, warnings: &mut Vec<Warning>) -> io::Result<Listing> {
        loop {
            let listing = place::list(self.given)?;
            let (any_new, more) = self.folder_watcher.watch(&listing.folders);
            if !any_new {
                warnings.extend(more);
                return Ok(listing);
            }
        }
    }

    /// Stores the stamps of files and returns the files that changed since they were read.
    fn note(&mut self, now: BTreeMap<Arc<str>, Option<Stamp>>) -> BTreeSet<Arc<str>> {
        let mut changed = BTreeSet::new();
        for (name, stamp) in now {
            let before = match stamp {
                Some(stamp) => self.stamps.insert(Arc::clone(&name), stamp),
                None => self.stamps.remove(&name),
            };
            if before != stamp {
                changed.insert(name);
            }
        }
        changed
    }

    /// Reads files and sends the changes. Compares all files together, so that an object that moves
    /// to another file is not deleted in between. Only the first time, when nothing is used before
    /// the end, takes files one by one, to hold less in memory.
    fn read(&mut self, changed: BTreeSet<Arc<str>>) -> Option<()> {
        if self.completeness.is_some() {
            return self.read_together(changed);
        }
        changed
            .into_iter()
            .try_for_each(|name| self.read_together([name].into()))
    }

    fn read_together(&mut self, changed: BTreeSet<Arc<str>>) -> Option<()> {
        let mut listens = Some(());
        let batches = &self.batches;
        self.catalog.update(changed, &mut self.disk, &mut |batch| {
            listens = listens.and_then(|()| batches.blocking_send(batch).ok());
        });
        listens
    }

    /// Sends `Complete` after the first full read, and after the last unreadable file was read.
    fn complete(&mut self) -> Option<()> {
        let completeness = match self.completeness {
            Some(Completeness::Whole) => return Some(()),
            None if self.stamps.is_empty() => return Some(()),
            None => {
                let (completeness, reports) = self.catalog.list_ended();
                let events = Vec::new();
                self.send(Batch { events, reports })?;
                completeness
            }
            Some(Completeness::Partial) => self.catalog.completeness(),
        };
        if self.completeness == Some(completeness) {
            return Some(());
        }
        self.completeness = Some(completeness);
        self.send(Event::Complete(completeness).into())
    }

    /// Sends the new reports on folders and on the path, and clears those that no longer apply.
    fn remark(&mut self, warnings: Vec<Warning>) -> Option<()> {
        let mut now: BTreeMap<Arc<str>, FileReport> = BTreeMap::new();
        for warning in warnings {
            let empty = || FileReport::empty(&warning.file);
            now.entry(Arc::clone(&warning.file))
                .or_insert_with(empty)
                .warnings
                .push(warning);
        }
        let over = self.remarks.keys().filter(|name| !now.contains_key(*name));
        let over: Vec<FileReport> = over.map(FileReport::empty).collect();
        let news = now
            .iter()
            .filter(|(name, report)| self.remarks.get(*name) != Some(*report));
        let mut reports: Vec<FileReport> = news.map(|(_, report)| report.clone()).collect();
        reports.extend(over);
        self.remarks = now;
        self.send(Batch {
            events: Vec::new(),
            reports,
        })
    }

    /// Whether the missing path was a folder with files. Then its file system may be unmounted, so
    /// its objects are not deleted.
    fn given_was_a_folder(&self) -> bool {
        !self.stamps.is_empty() && !self.stamps.contains_key(&self.given_name())
    }

    fn missing(&self, error: &io::Error) -> Warning {
        let message = if self.given_was_a_folder() {
            format!("{error}; the last content of this folder stays in use until it is back")
        } else {
            format!("{error}; waiting for it")
        };
        Warning::of_file(
            &self.given_name(),
            0,
            message,
            "create it or start with another path",
        )
    }

    fn given_name(&self) -> Arc<str> {
        self.given.to_string_lossy().into()
    }

    /// Sends a batch, unless it is empty. Waits while the channel is full.
    fn send(&mut self, batch: Batch) -> Option<()> {
        if batch.events.is_empty() && batch.reports.is_empty() {
            return Some(());
        }
        self.batches.blocking_send(batch).ok()
    }
}
