//! Tests that drains are checked against the clock, however long the reflector has been running.

use std::sync::atomic::{AtomicI64, Ordering};

use super::*;

const HOUR: i64 = 3_600_000;
/// 2026-11-20T00:00:00Z, when the drain is created.
const CREATED: i64 = 1_795_132_800_000;

/// A `Reflector` whose clock the test sets, in milliseconds after [`CREATED`].
struct Timed {
    bench: Bench,
    clock: Arc<AtomicI64>,
}

impl Timed {
    fn at(time: i64) -> Self {
        let clock = Arc::new(AtomicI64::new(CREATED + time));
        let read = Arc::clone(&clock);
        let read = Clock::reading(move || read.load(Ordering::Relaxed));
        let bench = Bench {
            reflector: Reflector::new(
                &WatchOptions {
                    clock: read,
                    ..WatchOptions::from(NodeSource::Nodes { own: "n1".into() })
                },
                &cluster_resources(ServiceSelection::Proxied),
            ),
            index: Index::new(Vec::new()),
        };
        let mut timed = Self { bench, clock };
        for id in listed_always() {
            timed.bench.list(id, []);
        }
        timed.bench.deliver();
        timed
    }

    fn set(&self, time: i64) {
        self.clock.store(CREATED + time, Ordering::Relaxed);
    }

    /// When the drain in the index ends, in milliseconds after [`CREATED`].
    fn ends(&mut self) -> Option<i64> {
        self.bench.deliver();
        let drain = self.bench.index.snapshot().drains().next()?;
        Some(drain.expires - CREATED)
    }
}

/// A drain that ends this many milliseconds after [`CREATED`].
fn drain(ends: i64) -> Node {
    let time = |after: i64| jiff::Timestamp::from_millisecond(CREATED + after).unwrap();
    let (created, ends) = (time(0), time(ends));
    object(
        DRAINS,
        &format!(
            r#"{{"metadata":{{"name":"b","creationTimestamp":"{created}"}},
                "spec":{{"match":{{"key":"zone","values":["b"]}},"expiresAt":"{ends}"}}}}"#
        ),
    )
}

#[test]
fn a_drain_that_is_renewed_over_a_watch_is_checked_at_the_time_of_the_renewal() {
    // A reflector that starts with the drain, and a reflector that has been running for days.
    for age in [0, 100 * HOUR] {
        let mut timed = Timed::at(-age);
        timed.set(0);
        for now in [0, 60 * HOUR, 120 * HOUR] {
            timed.set(now);
            timed
                .bench
                .reflector
                .apply_object(DRAINS, &drain(now + 70 * HOUR));
            assert_eq!(timed.ends(), Some(now + 70 * HOUR), "{age}");
        }
    }
}

#[test]
fn a_renewal_that_is_too_early_by_a_slow_clock_is_used_later() {
    let mut timed = Timed::at(0);
    timed.bench.reflector.apply_object(DRAINS, &drain(HOUR));
    timed.set(59 * HOUR / 60);
    timed
        .bench
        .reflector
        .apply_object(DRAINS, &drain(73 * HOUR));
    assert_eq!(timed.ends(), Some(HOUR), "the last good version stays");
    assert_eq!(timed.bench.index.warnings().count(), 2);
    timed.bench.reflector.recheck_early();
    assert_eq!(timed.ends(), Some(HOUR));
    timed.set(HOUR);
    timed.bench.reflector.recheck_early();
    assert_eq!(timed.ends(), Some(73 * HOUR));
    assert_eq!(timed.bench.index.warnings().count(), 0);
    assert!(timed.bench.reflector.early.is_empty());
}

#[test]
fn a_drain_that_was_deleted_or_corrected_is_not_checked_again() {
    let mut timed = Timed::at(0);
    timed
        .bench
        .reflector
        .apply_object(DRAINS, &drain(100 * HOUR));
    timed.bench.reflector.apply_object(DRAINS, &drain(HOUR));
    timed.set(50 * HOUR);
    timed.bench.reflector.recheck_early();
    assert_eq!(timed.ends(), Some(HOUR));
    timed
        .bench
        .reflector
        .apply_object(DRAINS, &drain(200 * HOUR));
    timed
        .bench
        .reflector
        .delete_object(DRAINS, &drain(200 * HOUR));
    timed.set(190 * HOUR);
    timed.bench.reflector.recheck_early();
    assert_eq!(timed.ends(), None);
}

#[test]
fn a_drain_that_a_list_has_not_named_yet_is_not_checked_again() {
    let mut timed = Timed::at(0);
    timed
        .bench
        .reflector
        .apply_object(DRAINS, &drain(100 * HOUR));
    timed.set(50 * HOUR);
    // The drain was deleted meanwhile.
    timed.bench.reflector.begin(DRAINS);
    timed.bench.reflector.recheck_early();
    assert_eq!(timed.ends(), None);
    timed.bench.reflector.absent(DRAINS);
    timed.bench.reflector.recheck_early();
    assert_eq!(timed.ends(), None);
    assert!(timed.bench.reflector.early.is_empty());
}

proptest! {
    #[test]
    fn reflectors_of_any_age_have_the_same_end_and_accept_a_renewal_within_72_hours(
        steps in prop::collection::vec((0..80_i64, 1..72_i64), 1..8),
        joins in prop::collection::vec(0..8_usize, 1..4),
    ) {
        let mut reflectors: Vec<Timed> = vec![Timed::at(-1_000 * HOUR)];
        let mut now = 0;
        for (step, (passes, ahead)) in steps.iter().enumerate() {
            now += passes * HOUR;
            let ends = now + ahead * HOUR;
            for timed in &mut reflectors {
                timed.set(now);
                timed.bench.reflector.apply_object(DRAINS, &drain(ends));
            }
            if joins.contains(&step) {
                let mut young = Timed::at(now);
                young.bench.list(DRAINS, [drain(ends)]);
                reflectors.push(young);
            }
            for timed in &mut reflectors {
                prop_assert_eq!(timed.ends(), Some(ends));
            }
        }
    }
}
