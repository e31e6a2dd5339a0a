//! A small sorted list.

/// Values in order, each once. A `BTreeSet` with one value takes as much memory as one with eleven, and most Services have
/// one virtual server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SortedList<T>(Box<[T]>);

impl<T: Ord> SortedList<T> {
    pub(crate) fn contains(&self, value: &T) -> bool {
        self.0.binary_search(value).is_ok()
    }

    pub(crate) fn iter(&self) -> std::slice::Iter<'_, T> {
        self.0.iter()
    }
}

impl<T> Default for SortedList<T> {
    fn default() -> Self {
        Self(Box::default())
    }
}

impl<T: Ord> Extend<T> for SortedList<T> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, values: I) {
        let mut all = std::mem::take(&mut self.0).into_vec();
        all.extend(values);
        all.sort_unstable();
        all.dedup();
        self.0 = all.into_boxed_slice();
    }
}

impl<T: Ord> FromIterator<T> for SortedList<T> {
    fn from_iter<I: IntoIterator<Item = T>>(values: I) -> Self {
        let mut list = Self::default();
        list.extend(values);
        list
    }
}

impl<'a, T> IntoIterator for &'a SortedList<T> {
    type Item = &'a T;
    type IntoIter = std::slice::Iter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_holds_what_a_set_holds(first: Vec<u8>, more: Vec<u8>, sought: u8) {
            let mut list: SortedList<u8> = first.iter().copied().collect();
            let mut set: BTreeSet<u8> = first.into_iter().collect();
            prop_assert!(list.iter().eq(&set));
            list.extend(more.iter().copied());
            set.extend(more);
            prop_assert!(list.iter().eq(&set));
            prop_assert_eq!(list.contains(&sought), set.contains(&sought));
        }
    }
}
