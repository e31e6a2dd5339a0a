//! Processes many items on all cores; the results are in the order of the items.

use std::num::NonZero;
use std::sync::{Mutex, PoisonError};
use std::thread;

/// Items that a thread takes at a time.
const CHUNK: usize = 16;

/// The results of `work` for each item. Each thread has its own `tool`, such as a cache.
pub(crate) fn map<I: Sync, R: Send, T>(
    items: &[I],
    tool: impl Fn() -> T + Sync,
    work: impl Fn(&mut T, &I) -> R + Sync,
) -> Vec<R> {
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    let mut results: Vec<Option<R>> = Vec::new();
    results.resize_with(items.len(), || None);
    let chunks = Mutex::new(items.chunks(CHUNK).zip(results.chunks_mut(CHUNK)));
    let next = || chunks.lock().unwrap_or_else(PoisonError::into_inner).next();
    let run = || {
        let mut tool = tool();
        while let Some((items, results)) = next() {
            for (item, result) in items.iter().zip(results) {
                *result = Some(work(&mut tool, item));
            }
        }
    };
    thread::scope(|scope| {
        for _ in 1..cores.min(items.len().div_ceil(CHUNK)) {
            scope.spawn(run);
        }
        run();
    });
    results.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_in_the_order_of_the_items() {
        let items: Vec<u32> = (0..1000).collect();
        let doubled = map(
            &items,
            || 0,
            |seen, item| {
                *seen += 1;
                item * 2
            },
        );
        assert!(
            doubled
                .iter()
                .zip(&items)
                .all(|(result, item)| *result == item * 2)
        );
        assert_eq!(doubled.len(), items.len());
        assert!(map(&[] as &[u32], || (), |(), item| *item).is_empty());
    }
}
