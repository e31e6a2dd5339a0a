//! The events that a source sends, and their order.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use topology_core::model::Family;

use crate::object::{Ignored, Object, ObjectKey};
use crate::warning::Warning;

/// A change of the cluster, as a source reports it.
///
/// A source sends `Begin`, then an event for each object that exists, then `Complete`, and after
/// that only changes. It may send `Begin` again at any time, even before `Complete`. Before
/// `Complete` it may delete an object again: it sends the objects of a file while it reads the
/// file, and the file may be broken further down.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A full list follows. An object without an event before `Complete` no longer exists.
    Begin,
    /// The object exists with this content. Objects come in any order.
    Apply(Object),
    /// The object exists, and this program does not use it. It may have used an earlier version.
    Ignore(ObjectKey, Ignored),
    /// The object exists but is not valid now: its last good version stays in use.
    Keep(ObjectKey),
    Delete(ObjectKey),
    /// Objects use these labels of Nodes, and it is not known yet which Nodes have them.
    Unread(BTreeSet<Arc<str>>),
    /// The cause of a change of an EndpointSlice, which came before. An API server sends it for
    /// changes after the first list.
    Triggered(EndpointTrigger),
    /// The full list that began with the last `Begin` has ended.
    Complete(Completeness),
}

/// The cause of a change of an EndpointSlice: a Pod or the Service changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EndpointTrigger {
    /// That of the slice.
    pub family: Family,
    /// The slice's annotation `endpoints.kubernetes.io/last-change-trigger-time`.
    pub at: Timestamp,
}

/// Whether a full list contains every object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Completeness {
    /// Everything was read: an object that is not in the list does not exist.
    Whole,
    /// Some file was never readable, so its content is unknown. The objects that were read can be
    /// used, but nothing in the kernel may be removed as unknown yet. `Complete(Whole)` follows
    /// when every file was read once.
    Partial,
}

/// The warnings about one file. Replaces the last report on that file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileReport {
    /// The file as the user named it.
    pub file: Arc<str>,
    /// In the order of lines.
    pub warnings: Vec<Warning>,
    /// The number of objects of kinds that this program does not read, by kind (and API group, if
    /// any).
    pub skipped: BTreeMap<Arc<str>, usize>,
}

/// Events with the same cause, in the order to apply them.
///
/// A batch is never empty and has at most a few hundred events, so one change may be spread over
/// several batches.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Batch {
    pub events: Vec<Event>,
    pub reports: Vec<FileReport>,
}

impl FileReport {
    /// A report without warnings, which clears the last one.
    pub(crate) fn empty(file: &Arc<str>) -> Self {
        Self {
            file: Arc::clone(file),
            warnings: Vec::new(),
            skipped: BTreeMap::new(),
        }
    }

    /// A report with one warning about the file as a whole.
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
