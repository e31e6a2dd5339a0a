//! Computes the transaction from the held to the desired tables.

use super::desired::{DesiredTables, sets_of};
use super::sets::{Element, KeyType, SETS, SetRow};
use super::table::{Operation, TableFamily, Transaction};

/// The transaction from `held` to `desired`; `None` if they are equal, and no process is started.
pub(super) fn diff(held: &DesiredTables, desired: &DesiredTables) -> Option<Transaction> {
    if held == desired {
        return None;
    }
    let families = TableFamily::ALL;
    let is_same_table = |family| held.needs(family) == desired.needs(family);
    let is_same_range = |family| {
        let mut ranges = SETS.iter().filter(|set| set.key == KeyType::Range);
        ranges.all(|set| held.elements(set, family).eq(desired.elements(set, family)))
    };
    // Ranges could overlap while elements are changed one by one.
    if families
        .into_iter()
        .all(|family| is_same_table(family) && is_same_range(family))
    {
        return Some(elements(held, desired));
    }
    Some(replace(desired))
}

/// Replaces all tables by `desired`, and removes those that it does not need.
pub(super) fn replace(desired: &DesiredTables) -> Transaction {
    let family = |family| {
        let define = desired.table(family).map(Operation::DefineTable);
        std::iter::once(Operation::DeleteTable(family)).chain(define)
    };
    Transaction(TableFamily::ALL.into_iter().flat_map(family).collect())
}

/// Changes only set elements.
fn elements(held: &DesiredTables, desired: &DesiredTables) -> Transaction {
    let mut operations = Vec::new();
    let families = TableFamily::ALL.into_iter();
    for family in families.filter(|family| desired.needs(*family)) {
        for set in sets_of(family) {
            let added = missing_from(held, desired, set, family);
            if !added.is_empty() {
                operations.push(Operation::AddElements(family, set.name, added));
            }
            let removed = missing_from(desired, held, set, family);
            if !removed.is_empty() {
                operations.push(Operation::DeleteElements(family, set.name, removed));
            }
        }
    }
    Transaction(operations)
}

/// Elements that are in `more` and not in `less`.
fn missing_from(
    less: &DesiredTables,
    more: &DesiredTables,
    set: &SetRow,
    family: TableFamily,
) -> Vec<Element> {
    let elements = more.elements(set, family).copied();
    elements
        .filter(|element| !less.contains(set, element))
        .collect()
}
