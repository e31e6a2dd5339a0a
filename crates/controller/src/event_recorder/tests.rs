//! Events that are written, how often, and Events that are not written.

use serde_json::{Value, json};
use topology_core::model::PolicyName;

use super::pending_events::MOST_PENDING;
use super::*;

/// 2026-11-21T20:00:00Z.
const NOW: i64 = 1_795_291_200_000;

fn fallback(nodes: usize) -> ServiceFallback {
    ServiceFallback {
        policy: Some(PolicyName::namespaced("shop", "near")),
        from: "Prefer".to_owned(),
        to: "Uniform".to_owned(),
        since: NOW,
        nodes,
    }
}

fn seen(services: &[&str]) -> BTreeMap<Key, ServiceFallback> {
    let fallback_of = |service: &&str| {
        (
            key(&ObjectName::parse(service).unwrap(), FallbackReason::Panic).unwrap(),
            fallback(1),
        )
    };
    services.iter().map(fallback_of).collect()
}

/// The reports have all fallbacks.
fn all() -> BTreeSet<Arc<str>> {
    BTreeSet::new()
}

/// The reports may lack fallbacks of the namespace `shop`.
fn shop() -> BTreeSet<Arc<str>> {
    BTreeSet::from(["shop".into()])
}

/// Writes the Events that are due.
fn write(event_recorder: &mut EventRecorder, now: i64) -> Vec<Pending> {
    let due = event_recorder.pending(now);
    for entry in &due {
        event_recorder.record_result(now, entry, WriteResult::Written);
    }
    due
}

/// The Event of a creation; null for an update.
fn body(entry: &Pending) -> Value {
    match &entry.write {
        EventWrite::Create(event) => json!(event),
        EventWrite::Series(_) => Value::Null,
    }
}

/// Service and reason of each Event.
fn reasons_of(entries: &[Pending]) -> Vec<(String, &str)> {
    entries
        .iter()
        .map(|entry| (entry.key.0.to_string(), entry.key.1))
        .collect()
}

/// A recorder that has observed a cluster without fallbacks.
fn event_recorder() -> EventRecorder {
    let mut event_recorder = EventRecorder::new("one");
    assert_eq!(event_recorder.observe(NOW, &BTreeMap::new(), &all()), 0);
    event_recorder
}

#[test]
fn the_event_of_invalid_annotations_names_no_requested_mode() {
    let mut event_recorder = event_recorder();
    let fallback = ServiceFallback {
        policy: None,
        from: String::new(),
        ..fallback(1)
    };
    let key = key(&ObjectName::new("shop", "cart"), FallbackReason::Invalid).unwrap();
    event_recorder.observe(NOW, &BTreeMap::from([(key, fallback)]), &all());
    let written = write(&mut event_recorder, NOW);
    assert_eq!(
        reasons_of(&written),
        [("shop/cart".to_owned(), "TopologyInvalid")]
    );
    assert_eq!(
        body(&written[0])["note"],
        "a topology annotation is not valid, or names no TopologyPolicy of the namespace (ipvs-topo explain names it), and is not used: the Service gets Uniform (first reported by 1 node)"
    );
}

#[test]
fn annotations_that_owner_limits_do_not_allow_are_an_event() {
    let mut event_recorder = event_recorder();
    let fallback = ServiceFallback {
        policy: None,
        from: "Weighted".to_owned(),
        ..fallback(1)
    };
    let key = key(&ObjectName::new("shop", "cart"), FallbackReason::NotAllowed).unwrap();
    event_recorder.observe(NOW, &BTreeMap::from([(key, fallback)]), &all());
    let written = write(&mut event_recorder, NOW);
    assert_eq!(
        reasons_of(&written),
        [("shop/cart".to_owned(), "TopologyNotAllowed")]
    );
    let event = body(&written[0]);
    let note = event["note"].as_str().unwrap();
    assert!(
        note.contains("ownerLimits") && note.contains("asks for Weighted"),
        "{note}"
    );
}

/// For each reason: the Event, and parts of its note.
#[test]
fn missing_schedulers_and_limits_are_events_with_a_remedy() {
    for (reason, event, parts) in [
        (
            FallbackReason::SchedulerMissing,
            "SchedulerMissing",
            ["modprobe ip_vs_NAME", "wrr is used"],
        ),
        (
            FallbackReason::Clipped,
            "TopologyClipped",
            ["ownerLimits", "max-overload"],
        ),
        (
            FallbackReason::WeightClamped,
            "WeightClamped",
            ["no whole numbers", "scheduler"],
        ),
    ] {
        let mut event_recorder = event_recorder();
        let key = key(&ObjectName::new("shop", "cart"), reason).unwrap();
        event_recorder.observe(NOW, &BTreeMap::from([(key, fallback(2))]), &all());
        let written = write(&mut event_recorder, NOW);
        assert_eq!(reasons_of(&written), [("shop/cart".to_owned(), event)]);
        assert_eq!(body(&written[0])["type"], "Warning");
        let event = body(&written[0]);
        let note = event["note"].as_str().unwrap();
        assert!(parts.iter().all(|part| note.contains(part)), "{note}");
        event_recorder.observe(NOW, &BTreeMap::new(), &all());
        let over = write(&mut event_recorder, NOW);
        assert_eq!(
            reasons_of(&over),
            [("shop/cart".to_owned(), "TopologyApplied")]
        );
    }
}

#[test]
fn a_fallback_on_many_nodes_is_one_event_at_its_begin_and_one_at_its_end() {
    let mut event_recorder = event_recorder();
    for nodes in 1..=100 {
        let key = key(&ObjectName::new("shop", "cart"), FallbackReason::Panic).unwrap();
        event_recorder.observe(NOW, &BTreeMap::from([(key, fallback(nodes))]), &all());
    }
    let written = write(&mut event_recorder, NOW);
    assert_eq!(
        reasons_of(&written),
        [("shop/cart".to_owned(), "TopologyFallbackPanic")]
    );
    let [entry] = &written[..] else { panic!() };
    assert_eq!(
        body(entry),
        json!({
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": { "name": "cart.topologyfallbackpanic.1a1ffb1ba00", "namespace": "shop" },
            "eventTime": "2026-11-21T20:00:00.000000Z",
            "reportingController": "ipvs-topo.io/controller",
            "reportingInstance": "one",
            "action": "Decide",
            "reason": "TopologyFallbackPanic",
            "regarding": { "apiVersion": "v1", "kind": "Service", "namespace": "shop", "name": "cart" },
            "note": "too few endpoints are ready altogether: TopologyPolicy/shop/near asks for Prefer and gets Uniform (first reported by 1 node)",
            "type": "Warning",
        })
    );
    event_recorder.observe(NOW, &BTreeMap::new(), &all());
    let over = write(&mut event_recorder, NOW);
    assert_eq!(
        reasons_of(&over),
        [("shop/cart".to_owned(), "TopologyApplied")]
    );
    assert_eq!(body(&over[0])["type"], "Normal");
    assert_eq!(write(&mut event_recorder, NOW + 1000), []);
}

#[test]
fn a_change_of_the_reason_is_not_the_end_of_a_fallback() {
    let mut event_recorder = event_recorder();
    event_recorder.observe(NOW, &seen(&["shop/cart"]), &all());
    write(&mut event_recorder, NOW);
    let key = key(&ObjectName::new("shop", "cart"), FallbackReason::Empty).unwrap();
    event_recorder.observe(NOW, &BTreeMap::from([(key, fallback(1))]), &all());
    assert_eq!(
        reasons_of(&write(&mut event_recorder, NOW)),
        [("shop/cart".to_owned(), "TopologyFallbackEmpty")]
    );
}

#[test]
fn a_fallback_does_not_end_while_reports_are_incomplete() {
    let mut event_recorder = event_recorder();
    event_recorder.observe(NOW, &seen(&["shop/cart"]), &all());
    write(&mut event_recorder, NOW);
    event_recorder.observe(NOW, &BTreeMap::new(), &shop());
    event_recorder.observe(NOW, &seen(&["shop/cart"]), &shop());
    assert_eq!(write(&mut event_recorder, NOW), []);
    event_recorder.observe(NOW, &BTreeMap::new(), &all());
    assert_eq!(
        reasons_of(&write(&mut event_recorder, NOW)),
        [("shop/cart".to_owned(), "TopologyApplied")]
    );
}

#[test]
fn incomplete_reports_of_one_namespace_do_not_delay_the_end_in_others() {
    let mut event_recorder = event_recorder();
    event_recorder.observe(NOW, &seen(&["shop/cart", "team/api"]), &shop());
    write(&mut event_recorder, NOW);
    event_recorder.observe(NOW, &BTreeMap::new(), &shop());
    let written = write(&mut event_recorder, NOW);
    assert_eq!(
        reasons_of(&written),
        [("team/api".to_owned(), "TopologyApplied")]
    );
}

#[test]
fn a_fallback_that_no_report_has_for_long_is_forgotten() {
    let mut event_recorder = event_recorder();
    let mut now = NOW;
    for number in 0..1000 {
        now += SERIES_MILLIS / 10;
        event_recorder.observe(now, &seen(&[&format!("shop/s{number}")]), &shop());
        let kept = event_recorder.lasting.as_ref().unwrap().len();
        assert!(kept <= 11, "{kept} fallbacks after {number}");
        event_recorder.pending.clear();
    }
    // It is no end, because the reports may lack it, and the next time it begins again.
    event_recorder.observe(now, &BTreeMap::new(), &shop());
    event_recorder.observe(now + FORGET_MILLIS, &BTreeMap::new(), &all());
    assert_eq!(event_recorder.pending(now + FORGET_MILLIS), []);
    event_recorder.observe(now + 2 * FORGET_MILLIS, &seen(&["shop/s999"]), &shop());
    assert_eq!(
        reasons_of(&event_recorder.pending(now + 2 * FORGET_MILLIS)),
        [("shop/s999".to_owned(), "TopologyFallbackPanic")]
    );
}

/// Reports that do not change are not observed, so the last observation may be long ago.
#[test]
fn a_fallback_that_a_report_lacks_after_a_long_time_without_changes_is_not_forgotten() {
    let mut event_recorder = event_recorder();
    event_recorder.observe(NOW, &seen(&["shop/cart"]), &all());
    write(&mut event_recorder, NOW);
    let missing = NOW + 6 * FORGET_MILLIS;
    event_recorder.observe(missing, &BTreeMap::new(), &shop());
    let complete = missing + FORGET_MILLIS - 1;
    event_recorder.observe(complete, &BTreeMap::new(), &all());
    assert_eq!(
        reasons_of(&write(&mut event_recorder, complete)),
        [("shop/cart".to_owned(), "TopologyApplied")]
    );
}

#[test]
fn a_repeated_fallback_is_one_event_with_a_count() {
    let mut event_recorder = event_recorder();
    let (mut created, mut changed, mut count) = (0, 0, 0);
    for second in 0..300 {
        let services: &[&str] = if second % 2 == 0 { &["shop/cart"] } else { &[] };
        let now = NOW + second * 1000;
        event_recorder.observe(now, &seen(services), &all());
        for entry in write(&mut event_recorder, now) {
            if entry.key.1 == APPLIED {
                continue;
            }
            match entry.write {
                EventWrite::Create(_) => created += 1,
                EventWrite::Series(series) => {
                    changed += 1;
                    count = series.count;
                }
            }
        }
    }
    assert_eq!((created, changed), (1, 4));
    assert_eq!(
        count, 121,
        "the first write, and every other second of four minutes"
    );
}

/// Its creation was refused, or it was deleted.
#[test]
fn an_event_that_does_not_exist_is_created_when_the_fallback_repeats() {
    let mut event_recorder = event_recorder();
    let mut repeat = |minute: i64, result: WriteResult| {
        let now = NOW + minute * 60_000;
        event_recorder.observe(now, &seen(&["shop/cart"]), &all());
        let due = event_recorder.pending(now);
        let due = due.into_iter().find(|entry| entry.key.1 != APPLIED);
        let due = due.unwrap();
        event_recorder.record_result(now, &due, result);
        assert_eq!(event_recorder.pending.get(&due.key), None);
        event_recorder.observe(now, &BTreeMap::new(), &all());
        matches!(due.write, EventWrite::Create(_))
    };
    assert!(repeat(0, WriteResult::Refused));
    assert!(repeat(1, WriteResult::Written), "the creation was refused");
    assert!(!repeat(2, WriteResult::Refused), "the Event exists");
    assert!(repeat(3, WriteResult::Written), "the Event was deleted");
}

#[test]
fn a_new_leader_records_only_recent_fallbacks_under_the_same_name() {
    let mut first = event_recorder();
    first.observe(NOW, &seen(&["shop/cart"]), &all());
    let written = write(&mut first, NOW);
    let mut second = EventRecorder::new("two");
    let mut both = seen(&["shop/cart", "shop/old"]);
    both.entry(key(&ObjectName::new("shop", "old"), FallbackReason::Panic).unwrap())
        .or_default()
        .since = NOW - RECORDED_BEFORE_MILLIS;
    second.observe(NOW + 1, &both, &all());
    let again = write(&mut second, NOW + 1);
    assert_eq!(
        reasons_of(&again),
        [("shop/cart".to_owned(), "TopologyFallbackPanic")]
    );
    assert_eq!(
        again[0].name, written[0].name,
        "the API server already has this Event"
    );
}

#[test]
fn events_per_minute_are_limited_and_failed_writes_are_retried() {
    let mut event_recorder = event_recorder();
    let names: Vec<String> = (0..1000)
        .map(|number| format!("shop/s{number:04}"))
        .collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    assert_eq!(
        event_recorder.observe(NOW, &seen(&names), &all()),
        1000 - MOST_PENDING
    );
    let failed = event_recorder.pending(NOW);
    for entry in &failed {
        event_recorder.record_result(NOW, entry, WriteResult::Failed);
    }
    let most = usize::try_from(PER_MINUTE).unwrap();
    assert_eq!(failed.len(), most);
    assert_eq!(event_recorder.pending(NOW + 1000), []);
    let again = write(&mut event_recorder, NOW + 2000);
    assert_eq!(reasons_of(&again), reasons_of(&failed[..1]));
    let minute: usize = (3..63)
        .map(|second| write(&mut event_recorder, NOW + second * 1000).len())
        .sum();
    assert_eq!(minute, most);
}

#[test]
fn only_events_with_a_result_have_had_their_turn_and_count_for_the_limit() {
    let mut event_recorder = event_recorder();
    event_recorder.observe(NOW, &seen(&["a/s", "b/s", "c/s"]), &all());
    for first in ["a", "b", "c", "a"] {
        let due = event_recorder.pending(NOW);
        assert_eq!((due.len(), &*due[0].namespace), (3, first));
        event_recorder.record_result(NOW, &due[0], WriteResult::Failed);
    }
    assert_eq!(event_recorder.credit, ((PER_MINUTE - 4) * 1000, NOW));
}

/// A namespace with so many Services with a fallback, and others with one each.
fn flood(namespace: &str, count: usize, others: &[&str]) -> BTreeMap<Key, ServiceFallback> {
    let names = (0..count).map(|number| format!("{namespace}/s{number:04}"));
    let names: Vec<String> = names
        .chain(others.iter().map(|&other| other.to_owned()))
        .collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    seen(&names)
}

#[test]
fn d13_a_namespace_with_many_events_does_not_delay_those_of_others() {
    let mut event_recorder = event_recorder();
    event_recorder.observe(NOW, &flood("aaa", 1000, &[]), &all());
    // The first minute is used up.
    write(&mut event_recorder, NOW);
    let others = ["shop/cart", "team/api"];
    event_recorder.observe(NOW, &flood("aaa", 1000, &others), &all());
    let written: Vec<Pending> = (1..=3)
        .flat_map(|turn| write(&mut event_recorder, NOW + turn * 2000))
        .collect();
    let namespaces: Vec<&str> = written.iter().map(|entry| &*entry.namespace).collect();
    assert_eq!(namespaces, ["shop", "team", "aaa"]);
}

#[test]
fn d13_a_namespace_with_many_events_leaves_space_for_others() {
    let mut event_recorder = event_recorder();
    event_recorder.observe(NOW, &flood("aaa", 1000, &[]), &all());
    let dropped = event_recorder.observe(NOW, &flood("aaa", 1000, &["shop/cart"]), &all());
    assert_eq!(dropped, 1, "one of the large namespace");
    event_recorder.observe(NOW, &flood("aaa", 1000, &["shop/cart"]), &all());
    let written = write(&mut event_recorder, NOW);
    let namespaces = written.iter().map(|entry| &*entry.namespace);
    assert_eq!(namespaces.filter(|of| *of == "shop").count(), 1);
    // Two large namespaces have half each.
    let mut event_recorder = self::event_recorder();
    let mut both = flood("aaa", 1000, &[]);
    both.extend(flood("bbb", 1000, &[]));
    let dropped = event_recorder.observe(NOW, &both, &all());
    assert_eq!(dropped, 2000 - MOST_PENDING);
    let due = event_recorder.pending.in_turns(MOST_PENDING, |_| true);
    let of_first = due.iter().filter(|(name, _)| &*name.namespace == "aaa");
    assert_eq!(of_first.count(), MOST_PENDING / 2);
}

#[test]
fn every_reason_that_an_agent_may_report_has_an_event() {
    for reason in FallbackReason::ALL {
        assert!(
            key(&ObjectName::new("shop", "cart"), reason).is_some(),
            "{reason:?}"
        );
    }
    assert_eq!(
        key(&ObjectName::new("shop", "cart"), FallbackReason::Other),
        None
    );
}

#[test]
fn kubectl_describe_finds_the_event_of_a_cluster_policy() {
    let mut event_recorder = event_recorder();
    for (reason, kind) in [(LEVEL_UNKNOWN, "Warning"), (LEVELS_KNOWN, "Normal")] {
        let key = (ObjectName::new("", "near"), reason);
        let uid = Some("77".to_owned());
        assert!(event_recorder.add(key, NOW, "no Node has the label az".to_owned(), uid));
        let [entry] = &write(&mut event_recorder, NOW)[..] else {
            panic!("one Event")
        };
        assert_eq!(entry.namespace, "default");
        assert_eq!(body(entry)["reason"], reason);
        assert_eq!(body(entry)["type"], kind);
        assert_eq!(
            body(entry)["regarding"],
            json!({
                "apiVersion": "topology.ipvs-topo.io/v1alpha1", "kind": "ClusterTopologyPolicy",
                "name": "near", "uid": "77",
            })
        );
    }
}
