//! Computes the transaction from the held to the desired tables.

use super::desired::DesiredTables;
use super::family::TableFamily;
use super::rules::source_ranges;
use super::sets::{Element, SetName};
use super::table::{Operation, Table, Transaction};

/// The transaction from `held` to `desired`; `None` if the tables are equal, and no process is started.
pub(super) fn diff(held: &DesiredTables, desired: &DesiredTables) -> Option<Transaction> {
    if held == desired {
        return None;
    }
    let mut families = TableFamily::ALL.into_iter();
    let has_same_tables = families.all(|family| held.needs(family) == desired.needs(family));
    if has_same_tables && held.options == desired.options {
        return Some(changes(held, desired)).filter(|changes| !changes.0.is_empty());
    }
    Some(replace(desired))
}

/// Replaces all tables by `desired`, and removes those that it does not need.
pub(super) fn replace(desired: &DesiredTables) -> Transaction {
    replace_by(|family| desired.table(family))
}

/// Defines new tables without the elements that can be added one by one.
pub(super) fn define(desired: &DesiredTables) -> Transaction {
    replace_by(|family| {
        let mut table = desired.table(family)?;
        let sets = table.sets.iter_mut();
        for set in sets.filter(|set| !set.key.is_interval()) {
            set.elements.clear();
        }
        Some(table)
    })
}

fn replace_by(table: impl Fn(TableFamily) -> Option<Table>) -> Transaction {
    let family = |family| {
        let define = table(family).map(Operation::DefineTable);
        std::iter::once(Operation::DeleteTable(family)).chain(define)
    };
    Transaction(TableFamily::ALL.into_iter().flat_map(family).collect())
}

/// Changes sets of tables that stay.
fn changes(held: &DesiredTables, desired: &DesiredTables) -> Transaction {
    let families = TableFamily::ALL.into_iter();
    let needed = families.filter(|family| desired.needs(*family));
    Transaction(
        needed
            .flat_map(|family| of_family(held, desired, family))
            .collect(),
    )
}

/// Changes the sets of a family, and the rules for each prefix length.
fn of_family(held: &DesiredTables, desired: &DesiredTables, family: TableFamily) -> Vec<Operation> {
    let (before, after) = (held.sets_of(family), desired.sets_of(family));
    let mut operations = Vec::new();
    for set in &after {
        let (name, key) = *set;
        if !before.contains(set) {
            let set = desired.set(name, key, family);
            operations.push(Operation::DefineSet(family, set));
        } else if key.is_interval() {
            operations.extend(interval(held, desired, name, family));
        } else {
            operations.extend(elements(held, desired, name, family));
        }
    }
    let lengths = desired.lengths(family);
    if held.lengths(family) != lengths {
        let rules =
            source_ranges(family, &lengths).map(|chain| Operation::ReplaceRules(family, chain));
        operations.extend(rules);
    }
    let deleted = before.into_iter().filter(|set| !after.contains(set));
    operations.extend(deleted.map(|(name, _)| Operation::DeleteSet(family, name)));
    operations
}

/// Replaces all elements: single ones could overlap.
fn interval(
    held: &DesiredTables,
    desired: &DesiredTables,
    set: SetName,
    family: TableFamily,
) -> Vec<Operation> {
    let elements: Vec<Element> = desired.elements(set, family).copied().collect();
    if held.elements(set, family).eq(&elements) {
        return Vec::new();
    }
    let mut operations = vec![Operation::FlushSet(family, set)];
    if !elements.is_empty() {
        operations.push(Operation::AddElements(family, set, elements));
    }
    operations
}

/// Changes single elements. The kernel refuses a second value for a key of a map, so this deletes first.
fn elements(
    held: &DesiredTables,
    desired: &DesiredTables,
    set: SetName,
    family: TableFamily,
) -> Vec<Operation> {
    let mut operations = Vec::new();
    let removed = missing_from(desired, held, set, family);
    if !removed.is_empty() {
        operations.push(Operation::DeleteElements(family, set, removed));
    }
    let added = missing_from(held, desired, set, family);
    if !added.is_empty() {
        operations.push(Operation::AddElements(family, set, added));
    }
    operations
}

/// Elements that are in `more` and not in `less`.
fn missing_from(
    less: &DesiredTables,
    more: &DesiredTables,
    set: SetName,
    family: TableFamily,
) -> Vec<Element> {
    let elements = more.elements(set, family).copied();
    elements.filter(|element| !less.has(set, element)).collect()
}
