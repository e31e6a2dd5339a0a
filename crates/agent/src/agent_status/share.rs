//! Divides the space of a report among namespaces, one entry at a time.

use std::collections::{BTreeMap, VecDeque};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use serde::Serialize;

/// Space in a list of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Room {
    /// Bytes of JSON.
    pub(super) bytes: usize,
    /// Entries.
    pub(super) entries: usize,
}

impl Room {
    /// Takes the space of one entry. Returns whether there was enough.
    fn fits(&mut self, entry: &impl Serialize) -> bool {
        let length = serde_json::to_vec(entry).map_or(usize::MAX, |text| text.len());
        // Plus a comma.
        let left = self.bytes.checked_sub(length.saturating_add(1));
        let (Some(bytes), Some(entries)) = (left, self.entries.checked_sub(1)) else {
            return false;
        };
        *self = Self { bytes, entries };
        true
    }
}

/// A number that is constant for a node, and different for each node.
pub(super) fn number_of(node: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    node.hash(&mut hasher);
    hasher.finish()
}

/// The entries of one list that fit, in order.
pub(super) fn first<T: Serialize>(entries: impl IntoIterator<Item = T>, room: &mut Room) -> Vec<T> {
    let entries = entries.into_iter();
    entries.take_while(|entry| room.fits(entry)).collect()
}

/// The entries that fit, in the order of `entries`: one of each group, then the second of each, and so on. An entry is
/// built in its turn; `None` means that it has nothing to report.
///
/// Each `node` starts with another group, so a group without space in one report has some in another.
pub(super) fn by_turns<G: Ord, K, T: Serialize>(
    entries: impl IntoIterator<Item = (G, K)>,
    room: &mut Room,
    node: u64,
    build: impl Fn(K) -> Option<T>,
) -> Vec<T> {
    let mut groups: BTreeMap<G, VecDeque<(usize, K)>> = BTreeMap::new();
    for (at, (group, entry)) in entries.into_iter().enumerate() {
        groups.entry(group).or_default().push_back((at, entry));
    }
    let mut queues: VecDeque<_> = groups.into_values().collect();
    let count = u64::try_from(queues.len()).unwrap_or(u64::MAX).max(1);
    queues.rotate_left(usize::try_from(node % count).unwrap_or_default());
    let mut taken = Vec::new();
    while let Some(mut queue) = queues.pop_front()
        && room.entries > 0
    {
        let mut keys = std::iter::from_fn(|| queue.pop_front());
        let Some((at, entry)) = keys.find_map(|(at, key)| Some((at, build(key)?))) else {
            continue;
        };
        if room.fits(&entry) {
            taken.push((at, entry));
            queues.push_back(queue);
        }
    }
    taken.sort_by_key(|(at, _)| *at);
    taken.into_iter().map(|(_, entry)| entry).collect()
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    const ROOM: Room = Room {
        bytes: 90,
        entries: 20,
    };

    /// A namespace with 500 entries and three with one.
    fn entries() -> impl Iterator<Item = (&'static str, String)> {
        let many = (0..500).map(|number| ("a", format!("a-{number:03}")));
        many.chain(["b", "c", "d"].map(|one| (one, format!("{one}-000"))))
    }

    #[test]
    fn a_namespace_with_500_entries_leaves_space_for_others() {
        for node in 0..9 {
            let taken = by_turns(entries(), &mut ROOM.clone(), node, Some);
            // Each takes eight bytes with quotes and comma.
            assert_eq!(taken.len(), 11, "{taken:?}");
            assert!(taken.is_sorted(), "{taken:?}");
            assert_eq!(taken[8..], ["b-000", "c-000", "d-000"]);
        }
    }

    #[test]
    fn groups_without_space_on_one_node_have_some_on_another() {
        let groups = || (0..50_u32).map(|group| (group, group));
        let room = Room {
            bytes: 1000,
            entries: 5,
        };
        let mut seen: Vec<u32> = (0..50)
            .flat_map(|node| by_turns(groups(), &mut room.clone(), node, Some))
            .collect();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), 50);
    }

    #[test]
    fn a_too_long_entry_does_not_end_the_turn_of_others() {
        let long = "x".repeat(100);
        let entries = [("a", long), ("b", "short".to_owned())];
        assert_eq!(by_turns(entries, &mut ROOM.clone(), 0, Some), ["short"]);
    }

    #[test]
    fn d13_an_entry_without_space_is_not_built() {
        let times = Cell::new(0);
        let build = |number: u32| {
            times.set(times.get() + 1);
            // Every second one has nothing to report.
            number.is_multiple_of(2).then_some(number)
        };
        let entries = (0..100_000_u32).map(|number| (number % 5_000, number));
        let mut room = Room {
            bytes: 10_000,
            entries: 64,
        };
        let taken = by_turns(entries, &mut room, 0, build);
        assert_eq!(taken.len(), 64);
        assert!(taken.iter().all(|number| number.is_multiple_of(2)));
        assert!(times.get() < 3_000, "{} were built", times.get());
    }
}
