//! Schedules checks of keys: failed ones after an increasing pause, draining ones when due.
//!
//! Time is a number of milliseconds of the loop's clock.

use std::collections::{BTreeMap, BTreeSet};

/// First pause after a failure, in milliseconds.
const FIRST: u64 = 200;
/// Longest pause, in milliseconds.
const LONGEST: u64 = 60_000;

/// A key that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    /// The error, one line.
    pub(crate) error: String,
    /// Consecutive failures.
    pub(crate) attempts: u32,
    /// When the first of them happened.
    pub(crate) since: u64,
    /// When it is tried again.
    pub(crate) due: u64,
    /// Whether the retry is postponed beyond its pause.
    is_put_off: bool,
}

/// The waiting keys, each with its own time.
#[derive(Debug)]
pub(crate) struct Agenda<K> {
    failures: BTreeMap<K, Failure>,
    /// When a healthy key must be checked, for example because a drain ends.
    visits: BTreeMap<K, u64>,
    /// Both of the above by time.
    queue: BTreeSet<(u64, K)>,
}

impl<K: Ord + Clone> Agenda<K> {
    pub(crate) fn new() -> Self {
        Self {
            failures: BTreeMap::new(),
            visits: BTreeMap::new(),
            queue: BTreeSet::new(),
        }
    }

    /// Records a failure. Returns whether its text is new, so that one cause is logged once.
    pub(crate) fn failed(&mut self, key: &K, error: String, now: u64) -> bool {
        let former = self.failures.remove(key);
        let attempts = former.as_ref().map_or(0, |former| former.attempts);
        let pause = FIRST.saturating_mul(1 << attempts.min(16)).min(LONGEST);
        let failure = Failure {
            attempts: attempts.saturating_add(1),
            since: former.as_ref().map_or(now, |former| former.since),
            due: now.saturating_add(pause),
            is_put_off: false,
            error,
        };
        let is_new = former
            .as_ref()
            .is_none_or(|former| former.error != failure.error);
        if let Some(former) = former {
            self.queue.remove(&(former.due, key.clone()));
        }
        self.queue.insert((failure.due, key.clone()));
        self.failures.insert(key.clone(), failure);
        is_new
    }

    /// Postpones a failed key that is due at `now` until `until`.
    pub(crate) fn put_off(&mut self, key: &K, now: u64, until: u64) {
        self.change(key, |failure| {
            if failure.due <= now {
                (failure.due, failure.is_put_off) = (until, true);
            }
        });
    }

    /// Ends the postponement. Another failure keeps its own pause.
    pub(crate) fn resume(&mut self, key: &K, now: u64) {
        self.change(key, |failure| {
            if failure.is_put_off {
                (failure.due, failure.is_put_off) = (now, false);
            }
        });
    }

    fn change(&mut self, key: &K, change: impl FnOnce(&mut Failure)) {
        if let Some(failure) = self.failures.get_mut(key) {
            self.queue.remove(&(failure.due, key.clone()));
            change(failure);
            self.queue.insert((failure.due, key.clone()));
        }
    }

    /// Records success. Returns the failure that this ends, if any.
    pub(crate) fn succeeded(&mut self, key: &K) -> Option<Failure> {
        let failure = self.failures.remove(key)?;
        self.queue.remove(&(failure.due, key.clone()));
        Some(failure)
    }

    /// Schedules a check of a key, or none; replaces an earlier one.
    pub(crate) fn visit(&mut self, key: &K, at: Option<u64>) {
        if let Some(former) = self.visits.remove(key) {
            self.queue.remove(&(former, key.clone()));
        }
        if let Some(at) = at {
            self.visits.insert(key.clone(), at);
            self.queue.insert((at, key.clone()));
        }
    }

    /// When the next key is due.
    pub(crate) fn next(&self) -> Option<u64> {
        self.queue.first().map(|(due, _)| *due)
    }

    /// Keys that are due at `now`. They stay scheduled until their result is recorded.
    pub(crate) fn due(&self, now: u64) -> BTreeSet<K> {
        let due = self.queue.iter().take_while(|(due, _)| *due <= now);
        due.map(|(_, key)| key.clone()).collect()
    }

    /// The failure of a key, if any.
    pub(crate) fn failure(&self, key: &K) -> Option<&Failure> {
        self.failures.get(key)
    }

    /// Number of failed keys.
    pub(crate) fn failing(&self) -> usize {
        self.failures.len()
    }

    /// When the oldest failure of some keys began.
    pub(crate) fn failing_since(&self, counts: impl Fn(&K) -> bool) -> Option<u64> {
        let failures = self.failures.iter().filter(|(key, _)| counts(key));
        failures.map(|(_, failure)| failure.since).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn d8_pauses_grow_per_key_and_are_bounded() {
        let mut agenda = Agenda::new();
        let mut now = 0;
        let mut pauses = Vec::new();
        for _ in 0..12 {
            agenda.failed(&"a", "busy".to_owned(), now);
            let due = agenda.next().unwrap();
            pauses.push(due - now);
            now = due;
        }
        assert_eq!(pauses[..4], [200, 400, 800, 1600]);
        assert_eq!(pauses.last(), Some(&LONGEST));
    }

    #[test]
    fn w_07_one_cause_is_new_once_and_again_after_a_success() {
        let mut agenda = Agenda::new();
        assert!(agenda.failed(&"a", "busy".to_owned(), 0));
        assert!(!agenda.failed(&"a", "busy".to_owned(), 1));
        assert!(agenda.failed(&"a", "no memory".to_owned(), 2));
        assert_eq!(agenda.succeeded(&"a").unwrap().attempts, 3);
        assert_eq!(agenda.next(), None);
        assert!(agenda.failed(&"a", "busy".to_owned(), 3));
    }

    #[test]
    fn a_failing_key_does_not_delay_another_one() {
        let mut agenda = Agenda::new();
        for now in 0..5 {
            agenda.failed(&"slow", "busy".to_owned(), now);
        }
        agenda.failed(&"quick", "busy".to_owned(), 5);
        assert_eq!(agenda.due(205), BTreeSet::from(["quick"]));
    }

    #[test]
    fn a_visit_is_replaced_not_added() {
        let mut agenda = Agenda::new();
        agenda.visit(&"a", Some(10));
        agenda.visit(&"a", Some(20));
        assert_eq!((agenda.due(15).len(), agenda.next()), (0, Some(20)));
        agenda.visit(&"a", None);
        assert_eq!(agenda.next(), None);
    }

    #[test]
    fn d8_a_postponed_key_is_resumed_and_other_failures_keep_their_pause() {
        let mut agenda = Agenda::new();
        agenda.failed(&"a", "busy".to_owned(), 0);
        agenda.put_off(&"a", 100, 60_000);
        assert_eq!(agenda.next(), Some(200), "it was not due");
        agenda.resume(&"a", 110);
        assert_eq!(agenda.next(), Some(200), "it was not put off");
        agenda.put_off(&"a", 200, 60_200);
        agenda.resume(&"a", 300);
        assert_eq!(agenda.next(), Some(300));
        agenda.put_off(&"a", 300, 60_300);
        agenda.failed(&"a", "busy".to_owned(), 400);
        agenda.resume(&"a", 410);
        assert_eq!(agenda.next(), Some(800), "it failed by itself meanwhile");
    }

    #[test]
    fn a_key_may_fail_and_drain_at_once() {
        let mut agenda = Agenda::new();
        agenda.visit(&"a", Some(10));
        agenda.failed(&"a", "busy".to_owned(), 0);
        assert_eq!(agenda.due(10), BTreeSet::from(["a"]));
        agenda.succeeded(&"a");
        assert_eq!(agenda.next(), Some(10));
        assert_eq!(agenda.failing(), 0);
        assert_eq!(agenda.failing_since(|_| true), None);
    }
}
