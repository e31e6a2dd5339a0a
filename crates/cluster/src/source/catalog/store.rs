//! Holds the state of the catalog.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::entry::Entry;
use super::files::File;
use crate::object::ObjectKey;

/// All files and their objects.
#[derive(Debug, Default)]
pub(crate) struct Catalog {
    pub(super) files: BTreeMap<Arc<str>, File>,
    /// Every object that is in a file, or whose deletion is not reported yet.
    pub(super) entries: FxHashMap<ObjectKey, Entry>,
    /// Objects that several files define. They are reported after the first list.
    pub(super) shared: BTreeSet<ObjectKey>,
    /// The files with objects that are not valid yet, and when the first of these becomes valid.
    pub(super) early: BTreeMap<Arc<str>, i64>,
    /// The number of repeated objects that the report on each file names.
    pub(super) named: BTreeMap<Arc<str>, usize>,
    /// The files whose last report was not empty.
    pub(super) remarkable: BTreeSet<Arc<str>>,
    /// Whether the first list has ended.
    pub(super) listed: bool,
}
