//! The desired elements of our tables.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use super::rules::chains;
use super::sets::{Element, SETS, SetRow};
use super::table::{Set, Table, TableFamily};

/// The desired contents of our tables. Both families together, so that one change is one transaction.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DesiredTables {
    /// Elements by the name of the set; a set without elements has no entry.
    sets: BTreeMap<&'static str, BTreeSet<Element>>,
}

/// Endpoints of this node that were added or removed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EndpointDelta {
    pub added: Vec<IpAddr>,
    pub removed: Vec<IpAddr>,
}

impl EndpointDelta {
    pub fn is_empty(&self) -> bool {
        self.added.is_empty() && self.removed.is_empty()
    }

    /// Removes the addresses for which `keep` is false.
    pub fn retain(&mut self, keep: impl Fn(&IpAddr) -> bool) {
        self.added.retain(&keep);
        self.removed.retain(&keep);
    }
}

impl DesiredTables {
    /// Adds elements to a set.
    #[must_use]
    pub fn with(mut self, set: &SetRow, elements: impl IntoIterator<Item = Element>) -> Self {
        let mut elements = elements.into_iter().peekable();
        if elements.peek().is_some() {
            self.sets.entry(set.name).or_default().extend(elements);
        }
        self
    }

    pub(super) fn contains(&self, set: &SetRow, element: &Element) -> bool {
        let elements = self.sets.get(set.name);
        elements.is_some_and(|elements| elements.contains(element))
    }

    /// The elements of a set in a family's table.
    pub(super) fn elements(
        &self,
        set: &SetRow,
        family: TableFamily,
    ) -> impl Iterator<Item = &Element> {
        let elements = self.sets.get(set.name).into_iter().flatten();
        elements.filter(move |element| element.family() == family.addresses())
    }

    /// Whether `desired` has an element that `self` lacks, so that it must be written before the virtual servers.
    pub fn lacks_any_of(&self, desired: &Self) -> bool {
        let mut sets = desired.sets.iter();
        !sets.all(|(name, elements)| {
            let held = self.sets.get(name);
            held.is_some_and(|held| elements.is_subset(held))
        })
    }

    /// The part of `delta` that is not in the tables yet.
    pub fn missing_of(&self, delta: &EndpointDelta) -> EndpointDelta {
        let has = |(set, element): (&SetRow, Element)| self.contains(set, &element);
        let mut rest = delta.clone();
        let added = &mut rest.added;
        added.retain(|pod| !endpoint_elements(*pod).all(has));
        let removed = &mut rest.removed;
        removed.retain(|pod| endpoint_elements(*pod).any(has));
        rest
    }

    /// Adds and removes the elements of endpoints.
    pub fn apply(&mut self, delta: &EndpointDelta) {
        for (set, element) in delta.added.iter().copied().flat_map(endpoint_elements) {
            self.sets.entry(set.name).or_default().insert(element);
        }
        for (set, element) in delta.removed.iter().copied().flat_map(endpoint_elements) {
            if let Some(elements) = self.sets.get_mut(set.name) {
                elements.remove(&element);
            }
        }
        self.sets.retain(|_, elements| !elements.is_empty());
    }

    /// Whether the family of the address has a table.
    pub(super) fn has_table_for(&self, address: IpAddr) -> bool {
        match address {
            IpAddr::V4(_) => self.needs(TableFamily::Ip),
            IpAddr::V6(_) => self.needs(TableFamily::Ip6),
        }
    }

    /// Whether the family has a Service address; otherwise it gets no table.
    pub(super) fn needs(&self, family: TableFamily) -> bool {
        let mut sets = SETS.iter().filter(|set| set.needs_table);
        sets.any(|set| self.elements(set, family).next().is_some())
    }

    /// The desired table of a family; `None` if it needs none.
    pub(super) fn table(&self, family: TableFamily) -> Option<Table> {
        self.needs(family).then(|| Table {
            family,
            sets: sets_of(family).map(|set| self.set(set, family)).collect(),
            chains: chains(family),
        })
    }

    fn set(&self, row: &SetRow, family: TableFamily) -> Set {
        Set {
            name: row.name,
            key: row.key,
            elements: self.elements(row, family).copied().collect(),
        }
    }
}

/// The sets of a family's table.
pub(super) fn sets_of(family: TableFamily) -> impl Iterator<Item = &'static SetRow> {
    let rows = SETS.iter();
    rows.filter(move |set| set.in_arp || family != TableFamily::Arp)
}

/// The elements for an endpoint of this node, each with its set.
pub(super) fn endpoint_elements(pod: IpAddr) -> impl Iterator<Item = (&'static SetRow, Element)> {
    SETS.iter()
        .filter_map(move |set| Some((set, set.endpoint?(pod))))
}
