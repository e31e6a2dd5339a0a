//! Effects of time alone: ramps, expiry, slow start, recovery hold.

use std::sync::Arc;
use std::time::{Duration, Instant};

use topology_core::memory::Memory;
use topology_core::model::{
    Drain, DrainScope, HardServices, OnLastDomain, Protocol, TrafficPolicy,
};
use topology_core::policy::Policy;
use topology_core::ratio::Ratio;
use topology_core::resolve::{Fact, Note, Refusal, ResolvedServer};
use topology_core::virtual_server::VirtualServerKey;

use crate::world::{Ep, World, ZONE, drain, ep, weighted};

/// `me` in zone a, four endpoints in each of zones a and b.
fn world(policy: Policy) -> World {
    World::new("me")
        .node("me", &[(ZONE, "a")])
        .policy(policy)
        .endpoints(endpoints(4, 4))
}

fn endpoints(near: u8, far: u8) -> Vec<Ep> {
    let near = (1..=near).map(|number| ep(number).zone("a"));
    let far = (11..11 + far).map(|number| ep(number).zone("b"));
    near.chain(far).collect()
}

fn prefer() -> Policy {
    weighted(&[(ZONE, 100), ("*", 0)])
}

/// The decision at `now`, which is then stored, and when to resolve again.
fn at(world: &mut World, now: i64) -> (ResolvedServer, Option<i64>) {
    world.me.now = Some(now);
    let mut resolution = world.resolve();
    Arc::make_mut(&mut world.me.memory).store(&world.service.name, &resolution);
    (resolution.servers.remove(0), resolution.resolve_again_at)
}

/// The share of zone a, in percent.
fn near(server: &ResolvedServer) -> Ratio {
    let endpoints = server.decision.endpoints.iter();
    let near = endpoints.filter(|endpoint| endpoint.zone.as_deref() == Some("a"));
    near.map(|endpoint| endpoint.share).sum()
}

fn tenths(part: u64) -> Ratio {
    Ratio::new(part, 10)
}

fn ramping() -> Drain {
    Drain {
        starts: 1_000,
        expires: 100_000,
        ramp_seconds: 10,
        ..drain("zone", &["a"])
    }
}

#[test]
fn a_drain_ramps_in_ten_steps_and_ends() {
    let mut world = world(prefer());
    world.snapshot.set_drain(ramping());
    let mut seen = |now| {
        let (server, resolve_again_at) = at(&mut world, now);
        (near(&server), resolve_again_at)
    };
    assert_eq!(seen(0), (Ratio::ONE, Some(1_000)));
    assert_eq!(seen(1_000), (Ratio::ONE, Some(2_000)));
    assert_eq!(seen(2_000), (tenths(9), Some(3_000)));
    assert_eq!(seen(6_500), (tenths(5), Some(7_000)));
    assert_eq!(seen(10_999), (tenths(1), Some(11_000)));
    assert_eq!(seen(11_000), (Ratio::ZERO, Some(100_000)));
    assert_eq!(seen(100_000), (Ratio::ONE, None));
}

#[test]
fn two_ramps_are_nested() {
    let mut policy = weighted(&[(ZONE, 60), ("*", 40)]);
    policy.avoid = Vec::new();
    let mut world = world(policy);
    world.snapshot.set_drain(ramping());
    let other = Drain {
        name: "other".into(),
        starts: 3_000,
        ..drain("zone", &["b"])
    };
    world.snapshot.set_drain(Drain {
        ramp_seconds: 10,
        expires: 100_000,
        ..other
    });
    // Zone a keeps 3/10 and zone b 5/10. For 3/10 of all traffic no drain applies, for 2/10 that of a. For 5/10 both
    // would apply, but then no endpoint remains, so neither does.
    let (server, _) = at(&mut world, 8_000);
    assert_eq!(near(&server), tenths(3) * tenths(6) + tenths(5) * tenths(6));
}

#[test]
fn without_a_clock_a_drain_is_complete() {
    let mut world = world(prefer());
    world.snapshot.set_drain(ramping());
    let server = world.server();
    assert_eq!(near(&server), Ratio::ZERO);
    let zero = server
        .server
        .real_servers
        .iter()
        .filter(|real| real.weight == 0);
    assert_eq!(zero.count(), 4, "they finish their connections");
}

#[test]
fn a_drain_does_not_affect_traffic_policy_local_and_is_noted() {
    let notes = |drain: Drain| {
        let mut world = World::new("me")
            .node("me", &[(ZONE, "a")])
            .node("far", &[(ZONE, "b")])
            .endpoints([ep(1).on("me").zone("a"), ep(2).on("far").zone("b")]);
        world.service.internal_traffic_policy = TrafficPolicy::Local;
        world.snapshot.set_drain(drain);
        let server = world.server();
        assert_eq!(server.server.real_servers.len(), 1);
        assert_eq!(server.server.real_servers[0].weight, 1);
        server.decision.notes
    };
    let local = [Note::DrainLocal {
        drain: "shift".into(),
    }];
    let of_clients = |value: &str| Drain {
        scope: DrainScope::Clients,
        ..drain("zone", &[value])
    };
    assert_eq!(notes(drain("zone", &["a"])), local);
    assert_eq!(notes(of_clients("a")), local);
    assert_eq!(
        notes(drain("zone", &["b"])),
        [],
        "nothing of it is used here"
    );
    assert_eq!(notes(of_clients("b")), []);
}

#[test]
fn the_last_domain_is_drained_only_by_force() {
    let all = |on_last_domain| {
        let mut world = world(prefer());
        world.snapshot.set_drain(Drain {
            on_last_domain,
            ..drain("zone", &["a", "b"])
        });
        world.server()
    };
    let ignored = all(OnLastDomain::Ignore);
    assert_eq!(near(&ignored), Ratio::ONE);
    assert_eq!(
        ignored.decision.notes,
        [Note::DrainIgnored {
            drain: "shift".into()
        }]
    );
    let forced = all(OnLastDomain::Force);
    assert_eq!(forced.decision.refusal, Some(Refusal::Drained));
    assert!(
        forced
            .server
            .real_servers
            .iter()
            .all(|real| real.weight == 0)
    );
    assert_eq!(forced.server.real_servers.len(), 8);
}

#[test]
fn hard_services_are_drained_only_with_apply() {
    let hard = |hard_services| {
        let mut world = world(weighted(&[(ZONE, 100)]));
        world.snapshot.set_drain(Drain {
            hard_services,
            on_last_domain: OnLastDomain::Force,
            ..drain("zone", &["a"])
        });
        world.server().decision.refusal
    };
    assert_eq!(hard(HardServices::Ignore), None);
    assert_eq!(hard(HardServices::Apply), Some(Refusal::Drained));
}

#[test]
fn drained_clients_go_one_level_further_and_endpoints_stay() {
    let mut world = world(prefer());
    world.snapshot.set_drain(Drain {
        scope: DrainScope::Clients,
        ..drain("zone", &["a"])
    });
    let server = world.server();
    assert_eq!(near(&server), Ratio::new(1, 2), "all eight alike");
    world.me.node = "other".into();
    world = world.node("other", &[(ZONE, "b")]);
    assert_eq!(
        near(&world.server()),
        Ratio::ZERO,
        "only clients in the zone"
    );
}

#[test]
fn a_drain_holds_for_services_without_a_policy_and_hints_are_read_again() {
    let mut world = world(prefer());
    world.service.policy = None;
    let hinted = endpoints(2, 2).into_iter().enumerate();
    let hinted = hinted.map(|(at, ep)| ep.for_zones(&[if at < 2 { "a" } else { "b" }]));
    world = world.endpoints(hinted);
    assert_eq!(near(&world.server()), Ratio::ONE);
    world.snapshot.set_drain(drain("zone", &["a"]));
    let server = world.server();
    assert_eq!(near(&server), Ratio::ZERO);
    assert_eq!(server.server.real_servers.len(), 4);
}

#[test]
fn a_new_endpoint_grows_from_a_tenth() {
    let mut policy = weighted(&[("*", 1)]);
    policy.slow_start = 9;
    let mut world = World::new("me").node("me", &[]).policy(policy);
    world = world.endpoints([ep(1)]);
    assert_eq!(at(&mut world, 0).1, None, "no endpoint is new at first");
    world = world.endpoints([ep(1), ep(2)]);
    let mut weights = |now| {
        let (server, resolve_again_at) = at(&mut world, now);
        let endpoints = server.decision.endpoints.iter();
        (
            endpoints.map(|e| e.weight).collect::<Vec<_>>(),
            resolve_again_at,
        )
    };
    assert_eq!(weights(10_000), (vec![10, 1], Some(11_000)));
    assert_eq!(weights(11_000), (vec![5, 1], Some(12_000)));
    assert_eq!(weights(14_500), (vec![2, 1], Some(15_000)));
    assert_eq!(weights(18_999), (vec![10, 9], Some(19_000)));
    assert_eq!(weights(19_000), (vec![1, 1], None));
}

#[test]
fn an_endpoint_that_was_unready_is_new_again() {
    let mut policy = weighted(&[("*", 1)]);
    policy.slow_start = 9;
    let mut world = World::new("me").node("me", &[]).policy(policy);
    world = world.endpoints([ep(1), ep(2)]);
    at(&mut world, 0);
    world = world.endpoints([ep(1), ep(2).unready()]);
    at(&mut world, 1_000);
    world = world.endpoints([ep(1), ep(2)]);
    assert_eq!(at(&mut world, 2_000).1, Some(3_000));
}

/// A search through all ports for each port would take minutes.
#[test]
fn d13_the_memory_of_a_service_with_every_port_is_found_fast() {
    let mut policy = weighted(&[("*", 1)]);
    policy.slow_start = 9;
    let mut world = World::new("me").node("me", &[]).policy(policy);
    world = world.endpoints([ep(1)]);
    world.me.now = Some(0);
    let mut resolution = world.resolve();
    let one = resolution.servers.remove(0);
    let keys: Vec<_> = (1..=u16::MAX).map(at_port).collect();
    // The order in the kernel is not that of the ports.
    resolution.servers.extend(keys.iter().rev().map(|key| {
        let mut server = one.clone();
        server.server.key = *key;
        server
    }));
    let mut memory = Memory::default();
    memory.store(&world.service.name, &resolution);
    let began = Instant::now();
    for key in &keys {
        let known = memory.of(&world.service.name, key).unwrap();
        assert_eq!(known.ready_since.len(), 1);
    }
    assert_eq!(memory.of(&world.service.name, &at_port(0)), None);
    let took = began.elapsed();
    assert!(took < Duration::from_secs(5), "{took:?}");
}

fn at_port(port: u16) -> VirtualServerKey {
    VirtualServerKey::Address {
        protocol: Protocol::Tcp,
        address: [10, 96, 0, 10].into(),
        port,
    }
}

#[test]
fn a_level_that_shrank_waits_before_it_grows_again() {
    let mut policy = prefer();
    (policy.overprovision, policy.recovery_hold) = (Some(100), 10);
    let mut world = world(policy);
    let zone = |ready: u8| {
        let endpoints = endpoints(4, 4).into_iter().enumerate();
        endpoints.map(move |(at, ep)| {
            if at < 4 && at >= ready.into() {
                ep.unready()
            } else {
                ep
            }
        })
    };
    let mut near_with = |ready, now| {
        world
            .snapshot
            .set_slice(crate::world::slice("s-1", "s", zone(ready)));
        let (server, resolve_again_at) = at(&mut world, now);
        (near(&server), resolve_again_at)
    };
    let half = Ratio::new(1, 2);
    assert_eq!(near_with(4, 0), (Ratio::ONE, None));
    assert_eq!(near_with(2, 1_000), (half, None), "at once");
    assert_eq!(near_with(4, 2_000), (half, Some(12_000)));
    assert_eq!(near_with(4, 11_999), (half, Some(12_000)));
    assert_eq!(near_with(4, 12_000), (Ratio::ONE, None));
    assert_eq!(near_with(0, 13_000), (Ratio::ZERO, None));
    assert_eq!(
        near_with(1, 14_000),
        (Ratio::ZERO, Some(24_000)),
        "the first pod back waits"
    );
    assert_eq!(near_with(1, 24_000).0, Ratio::new(1, 4));
}

#[test]
fn a_drain_ramps_as_fast_with_a_recovery_hold() {
    let mut policy = prefer();
    policy.recovery_hold = 10;
    let mut world = world(policy);
    world.snapshot.set_drain(ramping());
    let mut seen = |now| near(&at(&mut world, now).0);
    assert_eq!(seen(1_000), Ratio::ONE);
    for step in 1..=10 {
        assert_eq!(seen(1_000 + 1_000 * step), tenths(10 - step.unsigned_abs()));
    }
    assert_eq!(seen(100_000), Ratio::ZERO, "the drain ended");
    assert_eq!(seen(110_000), Ratio::ONE);
}

#[test]
fn endpoints_that_a_ramp_excludes_from_a_part_of_the_traffic_count_in_the_rest() {
    let mut policy = prefer();
    (policy.overprovision, policy.recovery_hold) = (Some(100), 10);
    let mut world = world(policy).node("n1", &[(ZONE, "a")]);
    let half = endpoints(4, 4).into_iter().enumerate();
    world = world.endpoints(half.map(|(at, ep)| if at < 2 { ep.on("n1") } else { ep }));
    world.snapshot.set_drain(Drain {
        starts: 1_000,
        expires: 100_000,
        ramp_seconds: 10,
        ..drain("node", &["n1"])
    });
    for now in [1_000, 2_000, 3_000, 9_000, 11_000] {
        assert_eq!(near(&at(&mut world, now).0), Ratio::ONE, "at {now}");
    }
}

#[test]
fn a_level_waits_in_every_part_of_the_traffic() {
    let mut policy = prefer();
    policy.recovery_hold = 10;
    let mut world = world(policy);
    let zones = |near| endpoints(near, 4).into_iter().chain([ep(21).zone("c")]);
    world = world.endpoints(zones(0));
    world.snapshot.set_drain(Drain {
        starts: 1_000,
        expires: 100_000,
        ramp_seconds: 10,
        ..drain("zone", &["b"])
    });
    assert_eq!(near(&at(&mut world, 4_000).0), Ratio::ZERO);
    world = world.endpoints(zones(1));
    let (server, again) = at(&mut world, 6_000);
    assert_eq!((near(&server), again), (Ratio::ZERO, Some(7_000)));
    assert_eq!(near(&at(&mut world, 15_999).0), Ratio::ZERO);
    assert_eq!(near(&at(&mut world, 16_000).0), Ratio::ONE);
}

/// All of zone a and one endpoint of zone b fail, then one of zone a is back.
#[test]
fn a_level_waits_after_an_outage_in_which_all_endpoints_were_alike() {
    let mut policy = prefer();
    (policy.panic_percent, policy.recovery_hold) = (50, 10);
    let mut world = world(policy);
    let ready = |ready: &'static [u8]| {
        let endpoints = endpoints(4, 4)
            .into_iter()
            .zip([1, 2, 3, 4, 11, 12, 13, 14]);
        let known = endpoints.map(|(ep, number)| (ep, ready.contains(&number)));
        known.map(|(ep, ready)| if ready { ep } else { ep.unready() })
    };
    assert_eq!(at(&mut world, 0).1, None);
    world = world.endpoints(ready(&[12, 13, 14]));
    let (panicking, again) = at(&mut world, 1_000);
    assert!(panicking.decision.notes.contains(&Note::Panic));
    assert_eq!(again, None);
    world = world.endpoints(ready(&[1, 12, 13, 14]));
    let (server, again) = at(&mut world, 2_000);
    assert_eq!((near(&server), again), (Ratio::ZERO, Some(12_000)));
    assert_eq!(near(&at(&mut world, 12_000).0), Ratio::ONE);
    // The wait goes on while topology is off.
    world = world.endpoints(ready(&[12, 13, 14]));
    at(&mut world, 20_000);
    world = world.endpoints(ready(&[1, 12, 13]));
    let (panicking, again) = at(&mut world, 21_000);
    assert_eq!(near(&panicking), Ratio::new(1, 3), "all alike");
    assert_eq!(again, Some(31_000));
    world = world.endpoints(ready(&[1, 12, 13, 14]));
    assert_eq!(near(&at(&mut world, 30_999).0), Ratio::ZERO);
    assert_eq!(near(&at(&mut world, 31_000).0), Ratio::ONE);
}

#[test]
fn a_level_waits_after_a_time_in_which_no_endpoint_was_ready() {
    let mut policy = prefer();
    policy.recovery_hold = 10;
    let mut world = world(policy);
    at(&mut world, 0);
    world = world.endpoints([ep(11).zone("b").leaving(), ep(12).zone("b").leaving()]);
    assert_eq!(near(&at(&mut world, 1_000).0), Ratio::ZERO);
    world = world.endpoints(endpoints(1, 2));
    let (server, again) = at(&mut world, 2_000);
    assert_eq!((near(&server), again), (Ratio::ZERO, Some(12_000)));
}

#[test]
fn a_level_waits_on_while_this_node_is_unknown() {
    let mut policy = prefer();
    policy.recovery_hold = 10;
    let mut world = world(policy).endpoints(endpoints(0, 4));
    at(&mut world, 0);
    world = world.endpoints(endpoints(1, 4));
    assert_eq!(at(&mut world, 1_000).1, Some(11_000));
    world.snapshot.remove_node("me");
    assert_eq!(near(&at(&mut world, 2_000).0), Ratio::new(1, 5));
    world = world.node("me", &[(ZONE, "a")]);
    let (server, again) = at(&mut world, 3_000);
    assert_eq!((near(&server), again), (Ratio::ZERO, Some(11_000)));
}

#[test]
fn an_endpoint_that_drains_is_counted_as_draining_and_not_as_unready() {
    let mut world = world(prefer());
    world.snapshot.set_drain(drain("zone", &["b"]));
    let endpoints = endpoints(3, 2).into_iter();
    world = world.endpoints(endpoints.chain([ep(4).zone("a").unready()]));
    let decision = world.server().decision;
    let levels = decision.levels.iter();
    let counts = levels.map(|level| (level.usable, level.draining, level.total));
    assert_eq!(counts.collect::<Vec<_>>(), [(3, 0, 4), (0, 2, 2)]);
    let mut facts = decision.stages.iter().flat_map(|stage| &stage.facts);
    let is_counted = |fact: &Fact| {
        fact.to_string()
            .ends_with("0 of 2 endpoints usable, 2 draining")
    };
    assert!(facts.any(is_counted), "{:?}", decision.stages);
}
