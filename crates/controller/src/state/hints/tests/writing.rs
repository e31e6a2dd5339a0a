//! Writes of hints, and their removal when no Service requests them.

use super::*;

#[test]
fn hints_are_written_again_after_changes_of_the_manager() {
    let mut fake = settled();
    assert_eq!(fake.zones(), ["a", "a", "b", "c", "b", "c"]);
    assert_eq!(fake.state.hint_counts().written, 1);
    // The manager writes other endpoints without hints.
    fake.make("cart-1", &endpoints("a b b c"));
    assert_eq!(fake.settle(), (vec![], vec!["cart-1".to_owned()]));
    // The manager keeps the hints and adds an endpoint without hints.
    let mut more = fake.endpoints("cart-1");
    more.push(endpoint(7, "a"));
    fake.make("cart-1", &more);
    fake.settle();
    assert!(
        fake.zones().iter().all(|zone| !zone.is_empty()),
        "{:?}",
        fake.zones()
    );
}

#[test]
fn impossible_hints_are_removed_and_reported_until_they_are_possible() {
    let mut fake = settled();
    fake.make("cart-1", &endpoints("a"));
    fake.make("cart-2", &[]);
    let (events, _) = fake.settle();
    assert_eq!(reasons(&events), [DISABLED]);
    assert_eq!(
        events[0].1,
        "no topology aware hints: 1 ready endpoints are too few for 3 zones, addressType IPv4"
    );
    fake.make("cart-2", &[endpoint(9, "b")]);
    assert_eq!(fake.settle(), (vec![], vec![]), "still too few");
    fake.make("cart-2", &[endpoint(9, "b"), endpoint(10, "c")]);
    assert_eq!(reasons(&fake.settle().0), [ENABLED]);
    for zone in ["b", "c"] {
        fake.state
            .delete(Collection::Nodes, &ObjectName::new("", zone));
    }
    let (events, written) = fake.settle();
    assert!(
        events[0].1.contains("the Nodes do not say enough"),
        "{events:?}"
    );
    assert_eq!(written.len(), 2);
    assert_eq!(fake.zones().concat(), "");
    assert_eq!(fake.state.hint_counts().refused, 1);
}

#[test]
fn our_hints_are_removed_when_the_service_no_longer_requests_them_also_by_a_new_leader() {
    for forgets in [false, true] {
        for change in ["annotation", "selector", "deleted"] {
            let mut fake = settled();
            if forgets {
                fake.state.forget();
            }
            let mut object = service(&json!({}));
            if change == "selector" {
                object = service(&mode_annotation("Auto"));
                object["spec"]["selector"] = json!({ "app": "cart" });
            }
            if change == "deleted" {
                let name = ObjectName::new("shop", "cart");
                fake.state.delete(Collection::Services, &name);
            } else {
                fake.state.apply(Collection::Services, object);
            }
            let (events, written) = fake.settle();
            let expected: &[&str] = if change == "deleted" {
                &[]
            } else {
                &[DISABLED]
            };
            assert_eq!(reasons(&events), expected, "{change}");
            assert_eq!((written.len(), fake.zones().concat()), (2, String::new()));
        }
    }
}

#[test]
fn nothing_is_written_before_the_first_lists_are_complete() {
    let mut fake = settled();
    fake.state.hints.listed.remove(&Collection::Services);
    fake.state
        .delete(Collection::Services, &ObjectName::new("shop", "cart"));
    assert_eq!(fake.settle(), (vec![], vec![]));
}

#[test]
fn hints_that_the_api_server_drops_are_not_written_again() {
    let mut fake = Fake::new();
    let mut object = service(&json!({}));
    object["spec"]["trafficDistribution"] = json!("PreferSameNode");
    fake.state.apply(Collection::Services, object);
    fake.make("cart-1", &endpoints("a b"));
    fake.state.decide_hints();
    let [write] = &slice_writes(&mut fake.state)[..] else {
        panic!("one write");
    };
    let hints = &write.body["endpoints"][0]["hints"];
    assert_eq!(
        *hints,
        json!({ "forZones": [{ "name": "a" }], "forNodes": [{ "name": "a" }] })
    );
    let unchanged = fake.slices["cart-1"].clone();
    fake.state.record_write(write, unchanged);
    assert_eq!(slice_writes(&mut fake.state), []);
    fake.make("cart-1", &endpoints("a b c"));
    fake.state.decide_hints();
    assert_eq!(slice_writes(&mut fake.state).len(), 1);
}
