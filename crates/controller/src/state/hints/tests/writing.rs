//! What is written, and what is taken back when nobody asks.

use super::*;

#[test]
fn hints_are_dealt_out_and_follow_what_the_manager_does() {
    let mut fake = settled();
    assert_eq!(fake.zones(), ["a", "a", "b", "c", "b", "c"]);
    assert_eq!(fake.state.hinted().written, 1);
    // It writes other endpoints, and has never heard of hints.
    fake.make("cart-1", &endpoints("a b b c"));
    assert_eq!(fake.settle(), (vec![], vec!["cart-1".to_owned()]));
    // It keeps the hints that it finds, and adds an endpoint without.
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
fn what_cannot_be_is_taken_away_and_told_until_it_can() {
    let mut fake = settled();
    fake.make("cart-1", &endpoints("a"));
    fake.make("cart-2", &[]);
    let (told, _) = fake.settle();
    assert_eq!(words(&told), [DISABLED]);
    assert_eq!(
        told[0].1,
        "no topology aware hints: 1 ready endpoints are too few for 3 zones, addressType IPv4"
    );
    fake.make("cart-2", &[endpoint(9, "b")]);
    assert_eq!(fake.settle(), (vec![], vec![]), "still too few");
    fake.make("cart-2", &[endpoint(9, "b"), endpoint(10, "c")]);
    assert_eq!(words(&fake.settle().0), [ENABLED]);
    for zone in ["b", "c"] {
        fake.state
            .gone(Collection::Nodes, &(String::new(), zone.to_owned()));
    }
    let (told, written) = fake.settle();
    assert!(
        told[0].1.contains("the Nodes do not say enough"),
        "{told:?}"
    );
    assert_eq!(written.len(), 2);
    assert_eq!(fake.zones().concat(), "");
    assert_eq!(fake.state.hinted().refused, 1);
}

#[test]
fn ours_are_taken_away_when_nobody_asks_any_more_also_by_another_leader() {
    for forgets in [false, true] {
        for change in ["annotation", "selector", "deleted"] {
            let mut fake = settled();
            if forgets {
                fake.state.forget();
            }
            let mut object = service(&json!({}));
            if change == "selector" {
                object = service(&asking("Auto"));
                object["spec"]["selector"] = json!({ "app": "cart" });
            }
            if change == "deleted" {
                let name = ("shop".to_owned(), "cart".to_owned());
                fake.state.gone(Collection::Services, &name);
            } else {
                fake.state.exists(Collection::Services, object);
            }
            let (told, written) = fake.settle();
            let expected: &[&str] = if change == "deleted" {
                &[]
            } else {
                &[DISABLED]
            };
            assert_eq!(words(&told), expected, "{change}");
            assert_eq!((written.len(), fake.zones().concat()), (2, String::new()));
        }
    }
}

#[test]
fn nothing_is_written_before_everything_was_read() {
    let mut fake = settled();
    fake.state.hints.listed.remove(&Collection::Services);
    fake.state.gone(
        Collection::Services,
        &("shop".to_owned(), "cart".to_owned()),
    );
    assert_eq!(fake.settle(), (vec![], vec![]));
}

#[test]
fn what_the_api_server_drops_is_not_asked_for_again() {
    let mut fake = Fake::new();
    let mut object = service(&json!({}));
    object["spec"]["trafficDistribution"] = json!("PreferSameNode");
    fake.state.exists(Collection::Services, object);
    fake.make("cart-1", &endpoints("a b"));
    fake.state.look();
    let [write] = &of_slices(&mut fake.state)[..] else {
        panic!("one write");
    };
    let hints = &write.body["endpoints"][0]["hints"];
    assert_eq!(
        *hints,
        json!({ "forZones": [{ "name": "a" }], "forNodes": [{ "name": "a" }] })
    );
    let unchanged = fake.slices["cart-1"].clone();
    fake.state.wrote(write, unchanged);
    assert_eq!(of_slices(&mut fake.state), []);
    fake.make("cart-1", &endpoints("a b c"));
    fake.state.look();
    assert_eq!(of_slices(&mut fake.state).len(), 1);
}
