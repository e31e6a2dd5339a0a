//! The desired elements of our tables.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

use topology_core::model::Family;

use super::family::TableFamily;
use super::options::{ArpRequests, RuleOptions};
use super::rules::chains;
use super::sets::{Element, KeyType, SetElement, SetId, SetName};
use super::table::{Set, Table};

/// A prefix length of source ranges of a family.
pub(super) type PrefixLength = (Family, u8);

/// The desired contents of our tables. Both families together, so that one change is one transaction.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DesiredTables {
    /// Elements by set; a set without elements has no entry.
    sets: BTreeMap<SetName, BTreeSet<Element>>,
    /// The source ranges whose sets stay when they have no elements.
    kept: BTreeSet<PrefixLength>,
    pub(super) options: RuleOptions,
}

impl DesiredTables {
    /// Sets the options of the rules.
    #[must_use]
    pub fn with_options(mut self, options: RuleOptions) -> Self {
        self.options = options;
        self
    }

    /// Has sets for source ranges of these prefix lengths, even without elements.
    #[must_use]
    pub(super) fn keeping(mut self, lengths: BTreeSet<PrefixLength>) -> Self {
        self.kept = lengths;
        self
    }

    /// Adds elements to a set.
    #[must_use]
    pub fn with(mut self, set: SetId, elements: impl IntoIterator<Item = Element>) -> Self {
        for element in elements {
            self.insert(set, element);
        }
        self
    }

    pub(super) fn insert(&mut self, set: SetId, element: Element) {
        let elements = self.sets.entry(set.name_of(&element)).or_default();
        elements.insert(element);
        if let Some(follower) = element.follower() {
            self.insert(SetId::Marked, follower);
        }
    }

    /// Removes an element and what follows it, unless another element has the same key.
    pub(super) fn remove(&mut self, set: SetId, element: &Element) {
        self.remove_alone(set, element);
        let is_last = self.range(set, element, element.rivals()).next().is_none();
        if let Some(follower) = element.follower().filter(|_| is_last) {
            self.remove_alone(SetId::Marked, &follower);
        }
    }

    fn remove_alone(&mut self, set: SetId, element: &Element) {
        let name = set.name_of(element);
        if let Some(elements) = self.sets.get_mut(&name) {
            elements.remove(element);
            if elements.is_empty() {
                self.sets.remove(&name);
            }
        }
    }

    pub fn contains(&self, set: SetId, element: &Element) -> bool {
        self.has(set.name_of(element), element)
    }

    pub(super) fn has(&self, set: SetName, element: &Element) -> bool {
        let elements = self.sets.get(&set);
        elements.is_some_and(|elements| elements.contains(element))
    }

    /// The elements between two others, in the set that holds `element`.
    pub(super) fn range(
        &self,
        set: SetId,
        element: &Element,
        range: RangeInclusive<Element>,
    ) -> impl Iterator<Item = &Element> {
        let elements = self.sets.get(&set.name_of(element));
        elements
            .into_iter()
            .flat_map(move |set| set.range(range.clone()))
    }

    /// The elements of a set in a family's table.
    pub(super) fn elements(
        &self,
        set: SetName,
        family: TableFamily,
    ) -> impl Iterator<Item = &Element> {
        let elements = self.sets.get(&set).into_iter().flatten();
        elements.filter(move |element| element.family() == family.addresses())
    }

    /// The elements of a family, in no particular order. IPv4 sorts before IPv6: this begins at one end of the set, and
    /// passes no element of the other family.
    pub(super) fn of_family(&self, set: SetName, family: Family) -> impl Iterator<Item = &Element> {
        let mut elements = self.sets.get(&set).into_iter().flatten();
        let next = move || match family {
            Family::V4 => elements.next(),
            Family::V6 => elements.next_back(),
        };
        std::iter::from_fn(next).take_while(move |element| element.family() == family)
    }

    /// The elements that can be changed one by one, of the tables that are needed.
    pub(super) fn single_elements(&self) -> Vec<SetElement> {
        let sets = self.sets.iter();
        let single = sets.filter(|(set, _)| !set.id().row().key.is_interval());
        let elements =
            single.flat_map(|(set, elements)| elements.iter().map(|one| (set.id(), *one)));
        elements
            .filter(|(_, element)| self.has_table(element.family()))
            .collect()
    }

    /// Whether `desired` has a rule or element that `self` lacks, so that it must be written before the virtual servers.
    pub fn lacks_any_of(&self, desired: &Self) -> bool {
        let mut sets = desired.sets.iter();
        self.options != desired.options
            || !sets.all(|(name, elements)| {
                let held = self.sets.get(name);
                held.is_some_and(|held| elements.is_subset(held))
            })
    }

    /// Whether the family has a Service address and rules; otherwise it gets no table.
    pub(super) fn needs(&self, family: TableFamily) -> bool {
        self.has_rules(family) && self.has_table(family.addresses())
    }

    /// Whether a table of the family has rules.
    pub(super) fn has_rules(&self, family: TableFamily) -> bool {
        match family {
            TableFamily::Ip | TableFamily::Ip6 => true,
            TableFamily::Arp => self.options.arp == ArpRequests::Dropped,
        }
    }

    /// The desired table of a family; `None` if it needs none.
    pub(super) fn table(&self, family: TableFamily) -> Option<Table> {
        let sets = self.sets_of(family).into_iter();
        self.needs(family).then(|| Table {
            family,
            sets: sets
                .map(|(name, key)| self.set(name, key, family))
                .collect(),
            chains: chains(family, &self.lengths(family), &self.options),
        })
    }

    /// A set as the family's table holds it.
    pub(super) fn set(&self, name: SetName, key: KeyType, family: TableFamily) -> Set {
        Set {
            name,
            key,
            elements: self.elements(name, family).copied().collect(),
        }
    }

    /// The sets of a family's table.
    pub(super) fn sets_of(&self, family: TableFamily) -> Vec<(SetName, KeyType)> {
        let sets = SetId::ALL.iter().filter(|set| set.is_in(family));
        let names = sets.flat_map(|set| {
            let key = set.row().key;
            let lengths = match key {
                KeyType::SourceRange => self.lengths(family).into_iter().map(Some).collect(),
                _ => vec![None],
            };
            let names = lengths.into_iter().map(|length| set.with_length(length));
            names.map(move |name| (name, key))
        });
        names.collect()
    }

    /// The prefix lengths for which the family's table has a set of source ranges, the shortest first.
    pub(super) fn lengths(&self, family: TableFamily) -> Vec<u8> {
        if !SetId::SourceRanges.is_in(family) {
            return Vec::new();
        }
        let kept = self.kept.iter().copied();
        let all = kept.chain(self.used_lengths());
        let of_family = all.filter(|(addresses, _)| *addresses == family.addresses());
        let lengths: BTreeSet<u8> = of_family.map(|(_, length)| length).collect();
        lengths.into_iter().collect()
    }

    /// The prefix lengths of the source ranges.
    pub(super) fn used_lengths(&self) -> impl Iterator<Item = PrefixLength> {
        let lengths = self
            .sets
            .keys()
            .filter_map(|set| Some((set, set.length()?)));
        lengths.flat_map(|(set, length)| {
            let families = [Family::V4, Family::V6].into_iter();
            let holding = families.filter(|family| self.holds(*set, *family));
            holding.map(move |family| (family, length))
        })
    }

    /// Whether the set stays when it has no elements of the family.
    pub(super) fn keeps(&self, set: SetName, family: Family) -> bool {
        let length = set.length();
        length.is_some_and(|length| self.kept.contains(&(family, length)))
    }
}
