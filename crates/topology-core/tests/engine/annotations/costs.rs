//! What one Service can cost: a tenant may write long lists, and as many zones as endpoints.

use std::net::IpAddr;

use topology_core::policy::Mode;
use topology_core::resolve::Reason;

use super::{accepted, read, refused};
use crate::world::{World, ZONE, at};

/// `k0=1,k1=1` with so many entries, each with this ending.
fn list(entries: usize, ending: &str) -> String {
    let entries: Vec<String> = (0..entries)
        .map(|number| format!("k{number}{ending}"))
        .collect();
    entries.join(",")
}

#[test]
fn d13_a_list_has_at_most_as_many_entries_as_a_policy_has_levels() {
    for (name, ending) in [("avoid", ""), ("avoid", ":soft"), ("min-ready", "=1")] {
        for entries in [17, 65_000] {
            refused(
                &[("keys", "zone,*"), (name, &list(entries, ending))],
                &format!("{entries} entries; at most 16 are allowed"),
            );
        }
    }
    let most = list(16, "");
    let policy = accepted(&[("keys", "*"), ("avoid", &most)], Mode::Prefer, "*=100");
    assert_eq!(policy.avoid.len(), 16);
    let keys = format!("{},*", list(15, ""));
    assert!(read(&[("keys", &keys), ("min-ready", &list(15, "=2"))]).is_ok());
}

#[test]
fn d13_errors_do_not_repeat_a_long_value() {
    let long = "ü".repeat(100_000);
    let errors = read(&[("keys", "*"), ("min-ready", &list(16, "=2"))]).unwrap_err();
    assert_eq!(errors.len(), 1, "{errors:?}");
    let errors = read(&[("mode", "none"), ("on-no-match", &long)]).unwrap_err();
    assert_eq!(errors[0].value, format!("{}…", "ü".repeat(256)));
    let most = "x".repeat(256);
    let errors = read(&[("on-no-match", &most)]).unwrap_err();
    assert_eq!(errors[0].value, most);
}

/// A search of all zones for each endpoint would take minutes.
#[test]
fn d13_a_zone_for_each_endpoint_costs_little_more_than_one_zone() {
    const FAR: u32 = 100_000;
    for scheduler in ["wrr", "mh"] {
        let policy = accepted(
            &[
                ("mode", "balanced"),
                ("keys", "zone,*"),
                ("scheduler", scheduler),
            ],
            Mode::Balanced,
            "zone=100,*=0",
        );
        let far = (0..FAR).map(|number| {
            let address = IpAddr::from((0x0a00_0000 + number).to_be_bytes());
            at(address).zone(&format!("z{number}"))
        });
        let mut world = World::new("me")
            .node("me", &[(ZONE, "a")])
            .policy(policy)
            .endpoints(far.chain([at([10, 9, 9, 9].into()).on("me")]));
        let decision = world.server().decision;
        let (near, far): (Vec<_>, Vec<_>) = decision
            .endpoints
            .iter()
            .partition(|endpoint| endpoint.node.is_some());
        assert_eq!((near.len(), far.len()), (1, 100_000));
        assert!(
            far.iter()
                .all(|endpoint| endpoint.reason == Reason::InLevel)
        );
        assert!(far.iter().all(|endpoint| endpoint.weight == far[0].weight));
    }
}
