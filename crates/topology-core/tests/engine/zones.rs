//! Zones with their demand: vectors Q39 to Q43, and the effect of a cap on a whole cluster.

use std::collections::BTreeMap;

use topology_core::model::Node;
use topology_core::policy::{LevelKey, Mode, Policy, Residual};
use topology_core::ratio::Ratio;
use topology_core::resolve::{Note, ResolvedServer};

use crate::world::{Ep, World, ZONE, at, node, weighted};

const CAPACITY: &str = "topology.ipvs-topo.io/capacity";

/// A zone: its number of Nodes, which are clients, and of endpoints.
type Zone = (u8, u8);

fn prefer_zone(max_overload: Option<u32>) -> Policy {
    let mut policy = weighted(&[(ZONE, 100), ("*", 0)]);
    (policy.mode, policy.max_overload) = (Mode::Prefer, max_overload);
    policy
}

fn node_name(zone: usize, number: u8) -> String {
    format!("z{zone}-n{number}")
}

/// The decision on the first node of zone `me`.
fn seen_from(me: usize, zones: &[Zone], policy: &Policy) -> ResolvedServer {
    let mut world = World::new(&node_name(me, 0)).policy(policy.clone());
    let mut endpoints: Vec<Ep> = Vec::new();
    for (zone, (nodes, count)) in zones.iter().enumerate() {
        let name = format!("z{zone}");
        for number in 0..*nodes {
            world = world.node(&node_name(zone, number), &[(ZONE, &name)]);
        }
        let address = |number| at([10, 244, u8::try_from(zone).unwrap(), number].into());
        endpoints.extend((0..*count).map(|number| address(number).zone(&name)));
    }
    world.endpoints(endpoints).server()
}

/// The exact share of each zone, before it is converted to weights.
fn shares(server: &ResolvedServer, zones: usize) -> Vec<Ratio> {
    let mut shares = vec![Ratio::ZERO; zones];
    for endpoint in &server.decision.endpoints {
        let zone: usize = endpoint.zone.as_ref().unwrap()[1..].parse().unwrap();
        shares[zone] = shares[zone] + endpoint.share;
    }
    shares
}

fn weights(server: &ResolvedServer) -> BTreeMap<String, u32> {
    let endpoints = server.decision.endpoints.iter();
    endpoints
        .filter(|endpoint| endpoint.weight > 0)
        .map(|endpoint| (endpoint.zone.as_ref().unwrap().to_string(), endpoint.weight))
        .collect()
}

fn of<const N: usize>(weights: [(&str, u32); N]) -> BTreeMap<String, u32> {
    weights
        .map(|(zone, weight)| (zone.to_owned(), weight))
        .into()
}

#[test]
fn q39_capacity_classes_divide_a_level() {
    let mut world = World::new("me")
        .node("me", &[(ZONE, "a")])
        .node("big", &[(ZONE, "a"), (CAPACITY, "2")])
        .node("small", &[(ZONE, "a")])
        .policy(weighted(&[(ZONE, 70), ("*", 30)]));
    let near = [
        at([10, 0, 0, 1].into()).on("big"),
        at([10, 0, 0, 2].into()).on("small"),
    ];
    let far = (3..6).map(|number| at([10, 0, 0, number].into()).zone("b"));
    world = world.endpoints(near.into_iter().chain(far));
    let server = world.server();
    let weights: Vec<u32> = server.decision.endpoints.iter().map(|e| e.weight).collect();
    assert_eq!(weights, [14, 7, 3, 3, 3]);
}

#[test]
fn q40_the_rest_goes_to_zones_with_spare_endpoints() {
    let server = seen_from(0, &[(2, 4), (2, 8), (1, 4)], &prefer_zone(Some(0)));
    assert_eq!(
        shares(&server, 3),
        [Ratio::new(5, 8), Ratio::new(1, 4), Ratio::new(1, 8)]
    );
    assert_eq!(weights(&server), of([("z0", 5), ("z1", 1), ("z2", 1)]));
}

#[test]
fn q41_a_zone_a_little_too_small_keeps_nine_elevenths() {
    let server = seen_from(0, &[(1, 3), (1, 4), (1, 4)], &prefer_zone(Some(0)));
    let elevenths = |part| Ratio::new(part, 11);
    assert_eq!(
        shares(&server, 3),
        [elevenths(9), elevenths(1), elevenths(1)]
    );
}

#[test]
fn q42_a_zone_with_endpoints_to_spare_keeps_all() {
    let server = seen_from(0, &[(1, 8), (2, 4), (2, 4)], &prefer_zone(Some(0)));
    assert_eq!(shares(&server, 3), [Ratio::ONE, Ratio::ZERO, Ratio::ZERO]);
}

#[test]
fn q43_without_near_endpoints_all_goes_to_zones_with_spare_endpoints() {
    let server = seen_from(0, &[(1, 0), (1, 2), (1, 4)], &prefer_zone(Some(0)));
    assert_eq!(shares(&server, 3), [Ratio::ZERO, Ratio::ZERO, Ratio::ONE]);
    let full = server
        .decision
        .endpoints
        .iter()
        .find(|e| e.weight == 0)
        .unwrap();
    assert_eq!(full.reason.code(), "ZoneFull");
}

/// Load of each zone's endpoints relative to uniform, and the part of all traffic that stays in its zone; the demand
/// of all zones is equal.
fn cluster(endpoints: [u8; 3], policy: &Policy) -> ([Ratio; 3], Ratio) {
    let zones = endpoints.map(|count| (1, count));
    let views = [0, 1, 2].map(|me| shares(&seen_from(me, &zones, policy), 3));
    let all: u64 = endpoints.iter().map(|count| u64::from(*count)).sum();
    let third = Ratio::new(1, 3);
    let load = |zone: usize| {
        let traffic: Ratio = views.iter().map(|view| view[zone] * third).sum();
        traffic * Ratio::new(all, endpoints[zone].into())
    };
    let inside = (0..3).map(|zone| views[zone][zone] * third).sum();
    ([0, 1, 2].map(load), inside)
}

fn hundredths([a, b, c]: [u64; 3]) -> [Ratio; 3] {
    [a, b, c].map(|part| Ratio::new(part, 100))
}

#[test]
fn facts_2_5_5_without_overload_is_even_and_keeps_83_percent_inside() {
    let (load, inside) = cluster([2, 5, 5], &prefer_zone(Some(0)));
    assert_eq!((load, inside), ([Ratio::ONE; 3], Ratio::new(5, 6)));
}

#[test]
fn facts_2_5_5_with_20_percent_overload_keeps_87_percent_inside() {
    let (load, inside) = cluster([2, 5, 5], &prefer_zone(Some(20)));
    assert_eq!(
        (load, inside),
        (hundredths([120, 96, 96]), Ratio::new(13, 15))
    );
}

#[test]
fn facts_2_5_5_without_a_cap_doubles_the_load_of_the_small_zone() {
    let (load, inside) = cluster([2, 5, 5], &prefer_zone(None));
    assert_eq!((load, inside), (hundredths([200, 80, 80]), Ratio::ONE));
}

#[test]
fn facts_2_5_5_uniform_keeps_a_third_inside() {
    let (load, inside) = cluster([2, 5, 5], &weighted(&[("*", 1)]));
    assert_eq!((load, inside), ([Ratio::ONE; 3], Ratio::new(1, 3)));
}

#[test]
fn facts_4_4_3_with_20_percent_overload_keeps_99_4_percent_inside() {
    let (load, inside) = cluster([4, 4, 3], &prefer_zone(Some(20)));
    assert_eq!(load[2], Ratio::new(120, 100));
    assert_eq!(inside, Ratio::new(164, 165));
    let (load, inside) = cluster([4, 4, 3], &prefer_zone(None));
    assert_eq!((load[2], inside), (Ratio::new(11, 9), Ratio::ONE));
}

#[test]
fn facts_2_2_8_residual_by_capacity_is_even_and_residual_even_is_not() {
    let mut policy = prefer_zone(Some(0));
    assert_eq!(cluster([2, 2, 8], &policy).0, [Ratio::ONE; 3]);
    policy.residual = Residual::Even;
    assert_eq!(cluster([2, 2, 8], &policy).0[0], Ratio::new(12, 10));
}

#[test]
fn a_cap_never_leaves_clients_without_an_endpoint() {
    let hard = weighted(&[(ZONE, 100)]);
    let mut policy = hard.clone();
    policy.max_overload = Some(0);
    assert_eq!(
        seen_from(0, &[(1, 1), (1, 9)], &policy).server,
        seen_from(0, &[(1, 1), (1, 9)], &hard).server
    );
}

#[test]
fn nodes_that_are_not_ready_bring_no_demand() {
    let mut world = World::new("me")
        .node("me", &[(ZONE, "a")])
        .policy(prefer_zone(Some(0)));
    for name in ["b1", "b2", "b3"] {
        let ready = name == "b1";
        let other = node(name, &[(ZONE, "b")]);
        world.snapshot.set_node(Node { ready, ..other });
    }
    world = world.endpoints(
        [1, 2]
            .map(|number| at([10, 0, 0, number].into()).zone(if number == 1 { "a" } else { "b" })),
    );
    let decision = world.server().decision;
    assert_eq!(
        decision.levels[0].share,
        Ratio::ONE,
        "half the endpoints, half the demand"
    );
}

#[test]
fn traffic_above_the_cap_is_noted() {
    let server = seen_from(0, &[(1, 2), (1, 5), (1, 5)], &prefer_zone(Some(0)));
    let cap = Ratio::new(1, 2);
    let level = LevelKey::Label(ZONE.into());
    assert_eq!(server.decision.notes, [Note::Capped { level, cap }]);
    let stage = &server.decision.stages[8];
    assert_eq!(
        stage.facts[0].to_string(),
        "zone: endpoints 1/6, demand 1/3, at most 1/2 stay; 1 would, 1/2 go outward"
    );
}
