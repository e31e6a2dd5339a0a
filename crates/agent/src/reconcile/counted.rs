//! Values that several Services may have, and what changed of them.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

/// Values with reference counts: while a value moves from one Service to another, both have it.
#[derive(Debug)]
pub(super) struct Counted<T> {
    users: BTreeMap<T, u32>,
    changed: Changed<T>,
}

impl<T> Default for Counted<T> {
    fn default() -> Self {
        Self {
            users: BTreeMap::new(),
            changed: Changed::default(),
        }
    }
}

impl<T: Ord + Copy> Counted<T> {
    pub(super) fn add(&mut self, value: T) {
        let users = self.users.entry(value).or_default();
        *users += 1;
        if *users == 1 {
            self.changed.toggle(value);
        }
    }

    pub(super) fn remove(&mut self, value: T) {
        if let Entry::Occupied(mut users) = self.users.entry(value) {
            *users.get_mut() -= 1;
            if *users.get() == 0 {
                users.remove();
                self.changed.toggle(value);
            }
        }
    }

    pub(super) fn take_delta(&mut self) -> [Vec<T>; 2] {
        let users = &self.users;
        self.changed.take(|value| users.contains_key(value))
    }

    /// The first and the last value.
    pub(super) fn ends(&self) -> [Option<&T>; 2] {
        let users = &self.users;
        let ends = [users.first_key_value(), users.last_key_value()];
        ends.map(|end| end.map(|(value, _)| value))
    }

    pub(super) fn values(&self) -> impl Iterator<Item = T> {
        self.users.keys().copied()
    }
}

/// Values that were added or removed since the last call.
#[derive(Debug)]
pub(super) struct Changed<T>(BTreeSet<T>);

impl<T> Default for Changed<T> {
    fn default() -> Self {
        Self(BTreeSet::new())
    }
}

impl<T: Ord> Changed<T> {
    /// Added and removed again is no change.
    pub(super) fn toggle(&mut self, value: T) {
        if !self.0.remove(&value) {
            self.0.insert(value);
        }
    }

    /// The values that are present now, and those that are not.
    pub(super) fn take(&mut self, is_present: impl Fn(&T) -> bool) -> [Vec<T>; 2] {
        let changed = std::mem::take(&mut self.0).into_iter();
        let (added, removed) = changed.partition(is_present);
        [added, removed]
    }
}
