//! What is said, how often, and what is not.

use serde_json::{Value, json};
use topology_core::model::PolicyName;

use super::*;

/// 2026-11-21T20:00:00Z.
const NOW: i64 = 1_795_291_200_000;

fn instead(nodes: usize) -> ServiceFallback {
    ServiceFallback {
        policy: Some(PolicyName::namespaced("shop", "near")),
        from: "Prefer".to_owned(),
        to: "Uniform".to_owned(),
        since: NOW,
        nodes,
    }
}

fn seen(services: &[&str]) -> BTreeMap<Key, ServiceFallback> {
    let one = |service: &&str| {
        (
            key(&ObjectName::parse(service).unwrap(), FallbackReason::Panic).unwrap(),
            instead(1),
        )
    };
    services.iter().map(one).collect()
}

/// Writes what may be written.
fn write(event_recorder: &mut EventRecorder, now: i64) -> Vec<Pending> {
    let due = event_recorder.pending(now);
    for entry in &due {
        event_recorder.record_result(now, entry, true);
    }
    due
}

/// The Event as it is sent; null for an update.
fn body(entry: &Pending) -> Value {
    match &entry.write {
        EventWrite::Create(event) => json!(event),
        EventWrite::Series(_) => Value::Null,
    }
}

/// Service and reason of each.
fn notes(entries: &[Pending]) -> Vec<(String, &str)> {
    entries
        .iter()
        .map(|entry| (entry.key.0.to_string(), entry.key.1))
        .collect()
}

/// One that has looked at a cluster where all is as asked.
fn event_recorder() -> EventRecorder {
    let mut event_recorder = EventRecorder::new("one");
    assert_eq!(event_recorder.observe(NOW, &BTreeMap::new(), true), 0);
    event_recorder
}

#[test]
fn annotations_that_are_not_valid_ask_for_nothing_that_could_be_told() {
    let mut event_recorder = event_recorder();
    let instead = ServiceFallback {
        policy: None,
        from: String::new(),
        ..instead(1)
    };
    let key = key(&ObjectName::new("shop", "cart"), FallbackReason::Invalid).unwrap();
    event_recorder.observe(NOW, &BTreeMap::from([(key, instead)]), true);
    let said = write(&mut event_recorder, NOW);
    assert_eq!(notes(&said), [("shop/cart".to_owned(), "TopologyInvalid")]);
    assert_eq!(
        body(&said[0])["note"],
        "a topology annotation is not valid, or names no TopologyPolicy of the namespace (ipvs-topo explain names it), and is not used: the Service gets Uniform (first reported by 1 node)"
    );
}

#[test]
fn annotations_that_owner_limits_do_not_allow_are_an_event() {
    let mut event_recorder = event_recorder();
    let instead = ServiceFallback {
        policy: None,
        from: "Weighted".to_owned(),
        ..instead(1)
    };
    let key = key(&ObjectName::new("shop", "cart"), FallbackReason::NotAllowed).unwrap();
    event_recorder.observe(NOW, &BTreeMap::from([(key, instead)]), true);
    let written = write(&mut event_recorder, NOW);
    assert_eq!(
        notes(&written),
        [("shop/cart".to_owned(), "TopologyNotAllowed")]
    );
    let event = body(&written[0]);
    let note = event["note"].as_str().unwrap();
    assert!(
        note.contains("ownerLimits") && note.contains("asks for Weighted"),
        "{note}"
    );
}

/// Reason by reason: the Event, and what its text has to say.
#[test]
fn what_a_node_lacks_or_a_limit_takes_is_an_event_that_says_what_to_do() {
    for (reason, event, says) in [
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
        event_recorder.observe(NOW, &BTreeMap::from([(key, instead(2))]), true);
        let written = write(&mut event_recorder, NOW);
        assert_eq!(notes(&written), [("shop/cart".to_owned(), event)]);
        assert_eq!(body(&written[0])["type"], "Warning");
        let event = body(&written[0]);
        let note = event["note"].as_str().unwrap();
        assert!(says.iter().all(|words| note.contains(words)), "{note}");
        event_recorder.observe(NOW, &BTreeMap::new(), true);
        let over = write(&mut event_recorder, NOW);
        assert_eq!(notes(&over), [("shop/cart".to_owned(), "TopologyApplied")]);
    }
}

#[test]
fn what_many_nodes_report_is_said_once_when_it_begins_and_once_when_it_ends() {
    let mut event_recorder = event_recorder();
    for nodes in 1..=100 {
        let key = key(&ObjectName::new("shop", "cart"), FallbackReason::Panic).unwrap();
        event_recorder.observe(NOW, &BTreeMap::from([(key, instead(nodes))]), true);
    }
    let said = write(&mut event_recorder, NOW);
    assert_eq!(
        notes(&said),
        [("shop/cart".to_owned(), "TopologyFallbackPanic")]
    );
    let [entry] = &said[..] else { panic!() };
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
    event_recorder.observe(NOW, &BTreeMap::new(), true);
    let over = write(&mut event_recorder, NOW);
    assert_eq!(notes(&over), [("shop/cart".to_owned(), "TopologyApplied")]);
    assert_eq!(body(&over[0])["type"], "Normal");
    assert_eq!(write(&mut event_recorder, NOW + 1000), []);
}

#[test]
fn a_service_that_falls_back_for_another_reason_is_not_as_asked() {
    let mut event_recorder = event_recorder();
    event_recorder.observe(NOW, &seen(&["shop/cart"]), true);
    write(&mut event_recorder, NOW);
    let key = key(&ObjectName::new("shop", "cart"), FallbackReason::Empty).unwrap();
    event_recorder.observe(NOW, &BTreeMap::from([(key, instead(1))]), true);
    assert_eq!(
        notes(&write(&mut event_recorder, NOW)),
        [("shop/cart".to_owned(), "TopologyFallbackEmpty")]
    );
}

#[test]
fn what_reports_have_no_room_for_is_not_over() {
    let mut event_recorder = event_recorder();
    event_recorder.observe(NOW, &seen(&["shop/cart"]), true);
    write(&mut event_recorder, NOW);
    event_recorder.observe(NOW, &BTreeMap::new(), false);
    event_recorder.observe(NOW, &seen(&["shop/cart"]), false);
    assert_eq!(write(&mut event_recorder, NOW), []);
    event_recorder.observe(NOW, &BTreeMap::new(), true);
    assert_eq!(
        notes(&write(&mut event_recorder, NOW)),
        [("shop/cart".to_owned(), "TopologyApplied")]
    );
}

#[test]
fn what_comes_and_goes_is_one_event_that_counts() {
    let mut event_recorder = event_recorder();
    let (mut created, mut changed, mut count) = (0, 0, 0);
    for second in 0..300 {
        let services: &[&str] = if second % 2 == 0 { &["shop/cart"] } else { &[] };
        let now = NOW + second * 1000;
        event_recorder.observe(now, &seen(services), true);
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
        "once at the beginning, and every other second of four minutes"
    );
}

#[test]
fn another_leader_says_only_what_is_young_and_by_the_same_name() {
    let mut first = event_recorder();
    first.observe(NOW, &seen(&["shop/cart"]), true);
    let said = write(&mut first, NOW);
    let mut second = EventRecorder::new("two");
    let mut both = seen(&["shop/cart", "shop/old"]);
    both.entry(key(&ObjectName::new("shop", "old"), FallbackReason::Panic).unwrap())
        .or_default()
        .since = NOW - RECORDED_BEFORE_MILLIS;
    second.observe(NOW + 1, &both, true);
    let again = write(&mut second, NOW + 1);
    assert_eq!(
        notes(&again),
        [("shop/cart".to_owned(), "TopologyFallbackPanic")]
    );
    assert_eq!(
        again[0].name, said[0].name,
        "which the API server has already"
    );
}

#[test]
fn there_is_never_more_than_so_much_a_minute_and_what_fails_is_tried_again() {
    let mut event_recorder = event_recorder();
    let names: Vec<String> = (0..1000)
        .map(|number| format!("shop/s{number:04}"))
        .collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    assert_eq!(
        event_recorder.observe(NOW, &seen(&names), true),
        1000 - MOST_PENDING
    );
    let failed = event_recorder.pending(NOW);
    for entry in &failed {
        event_recorder.record_result(NOW, entry, false);
    }
    let most = usize::try_from(PER_MINUTE).unwrap();
    assert_eq!(failed.len(), most);
    assert_eq!(event_recorder.pending(NOW + 1000), []);
    let again = write(&mut event_recorder, NOW + 2000);
    assert_eq!(notes(&again), notes(&failed[..1]));
    let minute: usize = (3..63)
        .map(|second| write(&mut event_recorder, NOW + second * 1000).len())
        .sum();
    assert_eq!(minute, most);
}

#[test]
fn every_reason_that_an_agent_may_report_has_words() {
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
fn an_event_about_a_cluster_policy_is_where_kubectl_describe_looks_for_it() {
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
