//! Finds objects that wait long for labels, and remembers which of them were reported. The controller adds most labels
//! to TopologyMaps within seconds, so a short wait is normal.

use std::collections::BTreeSet;

use crate::object::ObjectKey;

#[derive(Debug, Default)]
pub(in crate::api::watch) struct WaitingObjects {
    /// Those that waited at the last moment.
    last: BTreeSet<ObjectKey>,
    /// Those that waited at the last two moments.
    long: BTreeSet<ObjectKey>,
    /// The objects that the last warning names.
    named: Vec<ObjectKey>,
    /// Whether the list of Nodes that they wait for is delayed, because the last was recent.
    delayed: bool,
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

    pub(in crate::api::watch) fn is_delayed(&self) -> bool {
        self.delayed
    }

    pub(in crate::api::watch) fn set_delayed(&mut self, delayed: bool) {
        self.delayed = delayed;
    }

    /// Replaces the objects that the warning names. Returns them if they changed.
    pub(in crate::api::watch) fn set_named(
        &mut self,
        named: Vec<ObjectKey>,
    ) -> Option<&[ObjectKey]> {
        let is_changed = self.named != named;
        self.named = named;
        is_changed.then_some(self.named.as_slice())
    }
}
