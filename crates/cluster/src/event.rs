//! What a source says, and in which order it may say it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::object::{Ignored, Object, ObjectKey};
use crate::warning::Warning;

/// One thing that a source says about the cluster.
///
/// A source begins with `Begin`, then names everything that exists, then says `Complete`; from
/// there on it tells changes. It may begin again at any time, even before `Complete`. What it says
/// before `Complete` it may also take back before it: a file is told while it is read, and may turn
/// out to be broken further down.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A full list follows. What it does not name by its `Complete` does not exist any more.
    Begin,
    /// The object exists with this content. Objects come in any order.
    Apply(Object),
    /// The object exists and is none of our business; an earlier version of it may have been.
    Ignore(ObjectKey, Ignored),
    /// The object exists but cannot be used as it is now: its last good version stays.
    Keep(ObjectKey),
    /// The object does not exist any more.
    Delete(ObjectKey),
    /// These labels of Nodes are used and not read yet: nobody knows which Nodes have them.
    Unread(BTreeSet<Arc<str>>),
    /// The full list since the last `Begin` has ended.
    Complete(Completeness),
}

/// Whether a full list names everything there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Completeness {
    /// Everything was read: what was not named does not exist.
    Whole,
    /// Some file has not been readable since the start, and nobody knows what is in it: what was
    /// read can be used, but nothing found in the kernel may be removed as unknown yet.
    /// `Complete(Whole)` follows when every file could be read once.
    Partial,
}

/// What is to be said about one file. It replaces everything said about that file before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileReport {
    /// The file as the user named it.
    pub file: Arc<str>,
    /// What is wrong in it, in the order of its lines.
    pub warnings: Vec<Warning>,
    /// How many objects of kinds that are not read it holds, by kind (and API group, if any).
    pub skipped: BTreeMap<Arc<str>, usize>,
}

/// Events that were caused together, in the order to apply them.
///
/// A batch is never empty. It is at most a few hundred events long, so one change may be spread
/// over several.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Batch {
    /// What the source says.
    pub events: Vec<Event>,
    /// What there is to say about files.
    pub reports: Vec<FileReport>,
}

impl FileReport {
    /// A report that there is nothing to say (any more).
    pub(crate) fn empty(file: &Arc<str>) -> Self {
        Self {
            file: Arc::clone(file),
            warnings: Vec::new(),
            skipped: BTreeMap::new(),
        }
    }

    /// A report that is one warning about the file as a whole.
    pub(crate) fn of(warning: Warning) -> Self {
        Self {
            file: Arc::clone(&warning.file),
            warnings: vec![warning],
            skipped: BTreeMap::new(),
        }
    }
}

impl From<Event> for Batch {
    fn from(event: Event) -> Self {
        Self {
            events: vec![event],
            reports: Vec::new(),
        }
    }
}

impl From<FileReport> for Batch {
    fn from(report: FileReport) -> Self {
        Self {
            events: Vec::new(),
            reports: vec![report],
        }
    }
}
