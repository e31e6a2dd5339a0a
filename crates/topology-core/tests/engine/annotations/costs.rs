//! What one Service can cost: a tenant may write as many zones as endpoints.

use std::net::IpAddr;

use topology_core::policy::Mode;
use topology_core::resolve::Reason;

use super::accepted;
use crate::world::{World, ZONE, at};

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
