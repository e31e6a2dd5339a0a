//! Collects the objects that an update has read.

use std::collections::BTreeSet;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::object::{Object, ObjectKey};
use crate::source::parse::ParsedObject;

/// What an update has brought so far.
#[derive(Default)]
pub(super) struct Update {
    pub(super) objects: Objects,
    /// Objects that may have changed.
    pub(super) touched: BTreeSet<ObjectKey>,
    /// Objects of several files, whose reports may have changed.
    pub(super) shared: BTreeSet<ObjectKey>,
    /// Files whose report may have changed.
    pub(super) to_report: BTreeSet<Arc<str>>,
}

/// Usable objects that were read, by their key.
#[derive(Debug, Default)]
pub(super) struct Objects {
    /// Of objects written more than once the last counts, by path and line.
    read: FxHashMap<ObjectKey, Delivered>,
}

#[derive(Debug)]
struct Delivered {
    file: Arc<str>,
    fingerprint: u64,
    object: Object,
}

impl Objects {
    /// Takes an object that was read from `file`.
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

    /// The fingerprint of the object that is here under `key`.
    pub(super) fn fingerprint(&self, key: &ObjectKey) -> Option<u64> {
        Some(self.read.get(key)?.fingerprint)
    }

    /// Takes the object out, if it is the one with that fingerprint.
    pub(super) fn take(&mut self, key: &ObjectKey, fingerprint: u64) -> Option<Object> {
        if self.fingerprint(key) != Some(fingerprint) {
            return None;
        }
        Some(self.read.remove(key)?.object)
    }
}
