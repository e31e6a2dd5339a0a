//! What is said, how often, and what is not.

use super::*;

/// 2026-11-21T20:00:00Z.
const NOW: i64 = 1_795_291_200_000;

fn instead(nodes: usize) -> Instead {
    Instead {
        policy: Some(PolicyName::namespaced("shop", "near")),
        from: "Prefer".to_owned(),
        to: "Uniform".to_owned(),
        since: NOW,
        nodes,
    }
}

fn seen(services: &[&str]) -> BTreeMap<Key, Instead> {
    let one = |service: &&str| (key(service, FallbackReason::Panic).unwrap(), instead(1));
    services.iter().map(one).collect()
}

/// Writes what may be written.
fn write(chronicle: &mut Chronicle, now: i64) -> Vec<Entry> {
    let due = chronicle.due(now);
    for entry in &due {
        chronicle.wrote(now, entry, true);
    }
    due
}

/// Service and reason of each.
fn told(entries: &[Entry]) -> Vec<(&str, &str)> {
    entries
        .iter()
        .map(|entry| (&*entry.key.0, entry.key.1))
        .collect()
}

/// One that has looked at a cluster where all is as asked.
fn chronicle() -> Chronicle {
    let mut chronicle = Chronicle::new("one");
    assert_eq!(chronicle.observe(NOW, &BTreeMap::new(), true), 0);
    chronicle
}

#[test]
fn annotations_that_are_not_valid_ask_for_nothing_that_could_be_told() {
    let mut chronicle = chronicle();
    let instead = Instead {
        policy: None,
        from: String::new(),
        ..instead(1)
    };
    let key = key("shop/cart", FallbackReason::Invalid).unwrap();
    chronicle.observe(NOW, &BTreeMap::from([(key, instead)]), true);
    let said = write(&mut chronicle, NOW);
    assert_eq!(told(&said), [("shop/cart", "TopologyInvalid")]);
    assert_eq!(
        said[0].body["note"],
        "a topology annotation is not valid (ipvs-topo explain names it) and not used: the Service gets Uniform (first reported by 1 node)"
    );
}

#[test]
fn what_many_nodes_report_is_said_once_when_it_begins_and_once_when_it_ends() {
    let mut chronicle = chronicle();
    for nodes in 1..=100 {
        let key = key("shop/cart", FallbackReason::Panic).unwrap();
        chronicle.observe(NOW, &BTreeMap::from([(key, instead(nodes))]), true);
    }
    let said = write(&mut chronicle, NOW);
    assert_eq!(told(&said), [("shop/cart", "TopologyFallbackPanic")]);
    let [entry] = &said[..] else { panic!() };
    assert!(!entry.is_known);
    assert_eq!(
        entry.body,
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
    chronicle.observe(NOW, &BTreeMap::new(), true);
    let over = write(&mut chronicle, NOW);
    assert_eq!(told(&over), [("shop/cart", "TopologyApplied")]);
    assert_eq!(over[0].body["type"], "Normal");
    assert_eq!(write(&mut chronicle, NOW + 1000), []);
}

#[test]
fn a_service_that_falls_back_for_another_reason_is_not_as_asked() {
    let mut chronicle = chronicle();
    chronicle.observe(NOW, &seen(&["shop/cart"]), true);
    write(&mut chronicle, NOW);
    let key = key("shop/cart", FallbackReason::Empty).unwrap();
    chronicle.observe(NOW, &BTreeMap::from([(key, instead(1))]), true);
    assert_eq!(
        told(&write(&mut chronicle, NOW)),
        [("shop/cart", "TopologyFallbackEmpty")]
    );
}

#[test]
fn what_reports_have_no_room_for_is_not_over() {
    let mut chronicle = chronicle();
    chronicle.observe(NOW, &seen(&["shop/cart"]), true);
    write(&mut chronicle, NOW);
    chronicle.observe(NOW, &BTreeMap::new(), false);
    chronicle.observe(NOW, &seen(&["shop/cart"]), false);
    assert_eq!(write(&mut chronicle, NOW), []);
    chronicle.observe(NOW, &BTreeMap::new(), true);
    assert_eq!(
        told(&write(&mut chronicle, NOW)),
        [("shop/cart", "TopologyApplied")]
    );
}

#[test]
fn what_comes_and_goes_is_one_event_that_counts() {
    let mut chronicle = chronicle();
    let (mut created, mut changed, mut count) = (0, 0, Value::Null);
    for second in 0..300 {
        let services: &[&str] = if second % 2 == 0 { &["shop/cart"] } else { &[] };
        let now = NOW + second * 1000;
        chronicle.observe(now, &seen(services), true);
        for entry in write(&mut chronicle, now) {
            if entry.key.1 == APPLIED {
                continue;
            }
            created += usize::from(!entry.is_known);
            changed += usize::from(entry.is_known);
            count = entry.body["series"]["count"].clone();
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
    let mut first = chronicle();
    first.observe(NOW, &seen(&["shop/cart"]), true);
    let said = write(&mut first, NOW);
    let mut second = Chronicle::new("two");
    let mut both = seen(&["shop/cart", "shop/old"]);
    both.entry(key("shop/old", FallbackReason::Panic).unwrap())
        .or_default()
        .since = NOW - LATE;
    second.observe(NOW + 1, &both, true);
    let again = write(&mut second, NOW + 1);
    assert_eq!(told(&again), [("shop/cart", "TopologyFallbackPanic")]);
    assert_eq!(
        again[0].name, said[0].name,
        "which the API server has already"
    );
}

#[test]
fn there_is_never_more_than_so_much_a_minute_and_what_fails_is_tried_again() {
    let mut chronicle = chronicle();
    let names: Vec<String> = (0..1000)
        .map(|number| format!("shop/s{number:04}"))
        .collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    assert_eq!(chronicle.observe(NOW, &seen(&names), true), 1000 - WAITING);
    let failed = chronicle.due(NOW);
    for entry in &failed {
        chronicle.wrote(NOW, entry, false);
    }
    let most = usize::try_from(PER_MINUTE).unwrap();
    assert_eq!(failed.len(), most);
    assert_eq!(chronicle.due(NOW + 1000), []);
    let again = write(&mut chronicle, NOW + 2000);
    assert_eq!(told(&again), told(&failed[..1]));
    let minute: usize = (3..63)
        .map(|second| write(&mut chronicle, NOW + second * 1000).len())
        .sum();
    assert_eq!(minute, most);
}

#[test]
fn every_reason_that_an_agent_may_report_has_words() {
    for reason in FallbackReason::ALL {
        assert!(key("shop/cart", reason).is_some(), "{reason:?}");
    }
    assert_eq!(key("shop/cart", FallbackReason::Other), None);
}
