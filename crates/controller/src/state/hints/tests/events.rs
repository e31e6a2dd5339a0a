//! The Events about hints.

use super::fake::CREATED;
use super::*;

#[test]
fn both_families_share_one_event() {
    let mut fake = Fake::new();
    fake.make("cart-1", &endpoints("a b c"));
    fake.make("cart-6", &endpoints("a b c"));
    let both = ["IPv4", "IPv6"]
        .map(|family| format!("endpoints have topology aware hints, addressType {family}"));
    assert_eq!(fake.settle().0, [(ENABLED, both.join("; "))]);
}

#[test]
fn first_events_have_the_same_time_for_every_leader_and_success_is_reported_after_the_write() {
    let mut fake = Fake::new();
    fake.make("cart-1", &endpoints("a"));
    for _leader in 0..2 {
        let since: Vec<_> = fake
            .state
            .decide_hints()
            .iter()
            .map(|event| event.since)
            .collect();
        assert_eq!(since, [Some(CREATED)]);
        fake.state.forget();
    }
    fake.make("cart-1", &endpoints("a b c"));
    assert_eq!(fake.state.decide_hints(), [], "no hints are written yet");
    assert_eq!(fake.state.hint_counts(), HintCounts::default());
    assert_eq!(reasons(&fake.settle().0), [ENABLED]);
}
