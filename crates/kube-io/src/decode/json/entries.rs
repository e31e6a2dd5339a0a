//! The entries of a JSON object in their order, each key once, in time that grows with their number alone.
//! Whoever writes the keys may choose them, so they are hashed with a secret.

use std::collections::HashMap;
use std::hash::Hash;

/// So many keys are compared one by one; nearly every object has fewer.
const FEW: usize = 16;

/// Keys with their values. Of a key that comes twice the last value counts, at the place of the first.
#[derive(Debug)]
pub(super) struct Entries<K, V> {
    list: Vec<(K, V)>,
    /// Where each key is, once there are many.
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

    /// A key that counts how often it is compared.
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
    fn of_a_key_that_comes_twice_the_last_value_counts_where_the_first_was() {
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
