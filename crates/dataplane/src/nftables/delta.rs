//! Changes of single elements, at a cost that follows the change.

use std::collections::{BTreeMap, BTreeSet};

use topology_core::model::Family;

use super::desired::DesiredTables;
use super::sets::{Element, SetElement, SetId, SetName};

/// Elements of sets that were added and removed: see [`super::Nft::apply_elements`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ElementDelta {
    pub added: Vec<SetElement>,
    pub removed: Vec<SetElement>,
}

impl ElementDelta {
    pub fn is_empty(&self) -> bool {
        self.added.is_empty() && self.removed.is_empty()
    }

    /// Removes the elements for which `keep` is false.
    pub(super) fn retain(&mut self, keep: impl Fn(&SetElement) -> bool) {
        self.added.retain(&keep);
        self.removed.retain(&keep);
    }

    /// The elements that follow those of maps in addition: added before them, and removed after them.
    pub(super) fn with_followers(self) -> Self {
        let (first, last) = (followers(&self.added), followers(&self.removed));
        Self {
            added: first.into_iter().chain(self.added).collect(),
            removed: self.removed.into_iter().chain(last).collect(),
        }
    }

    /// Sorts the elements by set and family.
    fn by_set(&self) -> BTreeMap<(SetName, Family), SetDelta<'_>> {
        let mut sets: BTreeMap<_, SetDelta<'_>> = BTreeMap::new();
        let place = |(set, element): &SetElement| (set.name_of(element), element.family());
        for added in &self.added {
            sets.entry(place(added)).or_default().adds = true;
        }
        for removed in &self.removed {
            let delta = sets.entry(place(removed)).or_default();
            delta.removed.insert(&removed.1);
        }
        sets
    }
}

fn followers(elements: &[SetElement]) -> Vec<SetElement> {
    let followers = elements
        .iter()
        .filter_map(|(_, element)| element.follower());
    followers
        .map(|follower| (SetId::Marked, follower))
        .collect()
}

/// Changes of one set in one family.
#[derive(Default)]
struct SetDelta<'a> {
    adds: bool,
    removed: BTreeSet<&'a Element>,
}

impl DesiredTables {
    /// The part of `delta` that is not in the tables yet.
    pub fn missing_of(&self, delta: &ElementDelta) -> ElementDelta {
        let has = |(set, element): &SetElement| self.contains(*set, element);
        let mut rest = delta.clone();
        rest.added.retain(|added| !has(added));
        // A value that a new one replaces is not removed once more.
        let replaced: BTreeSet<_> = self.replaced_by(&rest.added).into_iter().collect();
        let removed = &mut rest.removed;
        removed.retain(|removed| has(removed) && !replaced.contains(removed));
        rest
    }

    /// Adds and removes elements. A new value of a map replaces the old one.
    pub fn apply(&mut self, delta: &ElementDelta) {
        for (set, element) in self.replaced_by(&delta.added) {
            self.remove(set, &element);
        }
        for (set, element) in &delta.added {
            self.insert(*set, *element);
        }
        for (set, element) in &delta.removed {
            self.remove(*set, element);
        }
    }

    /// The values that `added` replaces in maps.
    pub(super) fn replaced_by(&self, added: &[SetElement]) -> Vec<SetElement> {
        let replaced = added.iter().flat_map(|(set, element)| {
            let rivals = self.range(*set, element, element.rivals());
            let others = rivals.filter(move |held| *held != element);
            others.map(|held| (*set, *held))
        });
        replaced.collect()
    }

    /// Whether `delta` changes single elements only: none of an interval, and no set or table is added or deleted.
    pub(super) fn can_apply(&self, delta: &ElementDelta) -> bool {
        let mut all = delta.added.iter().chain(&delta.removed);
        let deltas = delta.by_set();
        let mut places = deltas.keys().filter(|(set, _)| set.is_optional());
        let mut families = [Family::V4, Family::V6].into_iter();
        all.all(|(set, _)| !set.row().key.is_interval())
            && places.all(|(set, family)| {
                self.keeps(*set, *family)
                    || self.holds(*set, *family) == self.holds_after(&deltas, *set, *family)
            })
            && families.all(|family| {
                let mut sets = needing_table();
                self.has_table(family) == sets.any(|set| self.holds_after(&deltas, set, family))
            })
    }

    /// Whether packets of the family meet a table.
    pub(super) fn has_table(&self, family: Family) -> bool {
        needing_table().any(|set| self.holds(set, family))
    }

    /// Whether a set has elements of the family.
    pub(super) fn holds(&self, set: SetName, family: Family) -> bool {
        self.of_family(set, family).next().is_some()
    }

    /// Whether a set has elements of the family after a change.
    fn holds_after(
        &self,
        deltas: &BTreeMap<(SetName, Family), SetDelta<'_>>,
        set: SetName,
        family: Family,
    ) -> bool {
        let Some(delta) = deltas.get(&(set, family)) else {
            return self.holds(set, family);
        };
        let mut held = self.of_family(set, family);
        delta.adds || held.any(|element| !delta.removed.contains(element))
    }
}

/// The sets whose elements need a table.
fn needing_table() -> impl Iterator<Item = SetName> {
    let sets = SetId::ALL.iter().filter(|set| set.row().needs_table);
    sets.map(|set| set.with_length(None))
}
