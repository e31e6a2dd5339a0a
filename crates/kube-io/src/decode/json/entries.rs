//! Collects the entries of a JSON object in order, each key once, in linear time. A user may choose
//! the keys, so the hash has a random seed.

use std::collections::HashMap;
use std::hash::Hash;

/// Up to this number, keys are compared one by one. Nearly every object has fewer.
const FEW: usize = 16;

/// Keys with their values. If a key comes twice, the last value replaces the first one.
#[derive(Debug)]
pub(super) struct Entries<K, V> {
    list: Vec<(K, V)>,
    /// The index of each key; empty while there are few.
    places: HashMap<K, usize>,
}

impl<K, V> Default for Entries<K, V> {
    fn default() -> Self {
        Self {
            list: Vec::new(),
            places: HashMap::new(),
        }
    }
}

impl<K: Eq + Hash + Clone, V> Entries<K, V> {
    pub(super) fn put(&mut self, key: K, value: V) {
        let known = if self.list.len() <= FEW {
            self.list.iter().position(|(name, _)| *name == key)
        } else {
            if self.places.is_empty() {
                let keys = self.list.iter().enumerate();
                self.places = keys.map(|(at, (name, _))| (name.clone(), at)).collect();
            }
            self.places.get(&key).copied()
        };
        if let Some((_, old)) = known.and_then(|at| self.list.get_mut(at)) {
            *old = value;
            return;
        }
        if !self.places.is_empty() {
            self.places.insert(key.clone(), self.list.len());
        }
        self.list.push((key, value));
    }

    pub(super) fn into_list(mut self) -> Vec<(K, V)> {
        self.list.shrink_to_fit();
        self.list
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::hash::{Hash, Hasher};

    use super::*;

    thread_local!(static COMPARED: Cell<u64> = const { Cell::new(0) });

    /// A key that counts its comparisons.
    #[derive(Debug, Clone)]
    struct Counted(u32);

    impl PartialEq for Counted {
        fn eq(&self, other: &Self) -> bool {
            COMPARED.set(COMPARED.get() + 1);
            self.0 == other.0
        }
    }

    impl Eq for Counted {}

    impl Hash for Counted {
        fn hash<H: Hasher>(&self, state: &mut H) {
            self.0.hash(state);
        }
    }

    #[test]
    fn d13_an_object_of_many_keys_costs_a_few_comparisons_for_each() {
        let mut entries = Entries::default();
        for key in 0..100_000 {
            entries.put(Counted(key), key);
        }
        let compared = COMPARED.get();
        assert!(compared < 400_000, "{compared} comparisons");
        assert_eq!(entries.into_list().len(), 100_000);
    }

    #[test]
    fn the_last_value_of_a_repeated_key_is_in_the_place_of_the_first() {
        for many in [3, 100] {
            let mut entries = Entries::default();
            for key in 0..many {
                entries.put(key, "first");
            }
            entries.put(1, "last");
            entries.put(many, "new");
            let list = entries.into_list();
            assert_eq!(list.len(), many + 1);
            assert_eq!((list[1], list[many]), ((1, "last"), (many, "new")));
        }
    }
}
