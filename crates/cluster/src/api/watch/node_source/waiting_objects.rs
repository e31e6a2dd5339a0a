//! Finds objects that wait long for labels in TopologyMaps. The controller adds most labels within
//! seconds, so a short wait is normal.

use std::collections::BTreeSet;

use crate::object::ObjectKey;

#[derive(Debug, Default)]
pub(in crate::api::watch) struct WaitingObjects {
    /// Those that waited at the last moment.
    last: BTreeSet<ObjectKey>,
    /// Those that waited at the last two moments.
    long: BTreeSet<ObjectKey>,
}

impl WaitingObjects {
    /// Records which objects wait now.
    pub(in crate::api::watch) fn observe(&mut self, now: impl Iterator<Item = ObjectKey>) {
        let last = std::mem::replace(&mut self.last, now.collect());
        self.long = last.intersection(&self.last).cloned().collect();
    }

    pub(in crate::api::watch) fn is_long(&self, key: &ObjectKey) -> bool {
        self.long.contains(key)
    }
}
