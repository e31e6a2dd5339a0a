//! What is told.

use super::fake::CREATED;
use super::*;

#[test]
fn both_families_are_told_in_one_event() {
    let mut fake = Fake::new();
    fake.make("cart-1", &endpoints("a b c"));
    fake.make("cart-6", &endpoints("a b c"));
    let both = ["IPv4", "IPv6"]
        .map(|family| format!("endpoints have topology aware hints, addressType {family}"));
    assert_eq!(fake.settle().0, [(ENABLED, both.join("; "))]);
}

#[test]
fn what_a_leader_finds_at_first_is_told_as_of_the_same_time_and_success_when_it_is_there() {
    let mut fake = Fake::new();
    fake.make("cart-1", &endpoints("a"));
    for _leader in 0..2 {
        let since: Vec<_> = fake.state.look().iter().map(|one| one.since).collect();
        assert_eq!(since, [Some(CREATED)]);
        fake.state.forget();
    }
    fake.make("cart-1", &endpoints("a b c"));
    assert_eq!(fake.state.look(), [], "nothing is written yet");
    assert_eq!(fake.state.hinted(), Count::default());
    assert_eq!(words(&fake.settle().0), [ENABLED]);
}
