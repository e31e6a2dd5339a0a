//! Collects the objects that an update has read.

use std::collections::BTreeSet;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::object::{Object, ObjectKey};
use crate::source::parse::ParsedObject;

/// The results of an update so far.
#[derive(Default)]
pub(super) struct Update {
    pub(super) objects: Objects,
    /// Objects that may have changed.
    pub(super) touched: BTreeSet<ObjectKey>,
    /// Objects that several files define, so that the reports on these files may have changed.
    pub(super) shared: BTreeSet<ObjectKey>,
    /// Files whose report may have changed.
    pub(super) to_report: BTreeSet<Arc<str>>,
}

/// The valid objects that were read.
#[derive(Debug, Default)]
pub(super) struct Objects {
    /// If an object is defined more than once, the last definition by path and line.
    read: FxHashMap<ObjectKey, Delivered>,
}

#[derive(Debug)]
struct Delivered {
    file: Arc<str>,
    fingerprint: u64,
    object: Object,
}

impl Objects {
    /// Stores an object that was read from `file`.
    pub(super) fn put(&mut self, file: &Arc<str>, found: ParsedObject) {
        let ParsedObject {
            key,
            line: _,
            fingerprint,
            object,
        } = found;
        if self.read.get(&key).is_none_or(|other| other.file <= *file) {
            self.read.insert(
                key,
                Delivered {
                    file: Arc::clone(file),
                    fingerprint,
                    object,
                },
            );
        }
    }

    pub(super) fn fingerprint(&self, key: &ObjectKey) -> Option<u64> {
        Some(self.read.get(key)?.fingerprint)
    }

    /// Removes and returns the object, if it has this fingerprint.
    pub(super) fn take(&mut self, key: &ObjectKey, fingerprint: u64) -> Option<Object> {
        if self.fingerprint(key) != Some(fingerprint) {
            return None;
        }
        Some(self.read.remove(key)?.object)
    }
}
