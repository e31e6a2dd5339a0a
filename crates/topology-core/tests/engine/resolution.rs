//! Results of resolving besides endpoints: findings, families, ports, duplicates, order.

use topology_core::model::{Family, Frontend, Protocol, TrafficPolicy};
use topology_core::policy::{LevelKey, Mode, PolicySource};
use topology_core::resolve::{Note, Reason, Refusal};
use topology_core::virtual_server::RealServer;

use crate::world::{World, ZONE, at, ep, service_port, slice, slice_port, weighted};

pub(crate) fn addresses(real_servers: &[RealServer]) -> Vec<String> {
    let mut addresses: Vec<String> = real_servers
        .iter()
        .map(|real| format!("{}:{}", real.address, real.port))
        .collect();
    addresses.sort();
    addresses
}

pub(crate) fn findings(world: &mut World) -> Vec<String> {
    world
        .resolve()
        .findings
        .iter()
        .map(ToString::to_string)
        .collect()
}

#[test]
fn kp_vs_01_a_service_without_endpoints_has_a_virtual_server_that_refuses() {
    let server = World::new("me").server();
    assert_eq!(server.server.key.to_string(), "-t 10.96.0.10:80");
    assert_eq!(server.server.real_servers, []);
    assert_eq!(server.decision.refusal, Some(Refusal::NoEndpoints));
}

#[test]
fn kp_in_17_an_endpoint_in_two_slices_is_one_and_the_copy_on_this_node_wins() {
    let mut world = World::new("me").endpoints([ep(1).on("other").unready(), ep(2)]);
    world
        .snapshot
        .set_slice(slice("s-2", "s", [ep(1).on("me")]));
    let server = world.server();
    assert_eq!(
        addresses(&server.server.real_servers),
        ["10.244.0.1:8080", "10.244.0.2:8080"]
    );
    assert_eq!(server.decision.endpoints.len(), 2);
    assert_eq!(server.decision.endpoints[0].node.as_deref(), Some("me"));
}

#[test]
fn of_two_copies_elsewhere_a_ready_one_wins_in_any_order_of_slices() {
    for (first, second) in [("s-1", "s-2"), ("s-2", "s-1")] {
        let mut world = World::new("me");
        world
            .snapshot
            .set_slice(slice(first, "s", [ep(1).on("a").unready()]));
        world
            .snapshot
            .set_slice(slice(second, "s", [ep(1).on("b")]));
        let server = world.server();
        assert_eq!(server.server.real_servers.len(), 1);
        assert_eq!(server.decision.endpoints[0].node.as_deref(), Some("b"));
    }
}

#[test]
fn kp_in_08_each_port_has_its_own_endpoints_by_name_and_protocol() {
    let mut world = World::new("me");
    world.service.ports = vec![
        service_port("dns", Protocol::Udp, 53),
        service_port("dns-tcp", Protocol::Tcp, 53),
        service_port("metrics", Protocol::Tcp, 9153),
    ];
    let mut ports = slice("s-1", "s", [ep(1)]);
    ports.ports = vec![
        slice_port("dns", Protocol::Udp, 5353),
        slice_port("dns-tcp", Protocol::Tcp, 5353),
        slice_port("metrics", Protocol::Udp, 9153),
    ];
    world.snapshot.set_slice(ports);
    let servers = world.resolve().servers;
    let text = |server: &topology_core::resolve::ResolvedServer| {
        (
            server.server.key.to_string(),
            addresses(&server.server.real_servers).join(" "),
        )
    };
    let texts: Vec<_> = servers.iter().map(text).collect();
    let expected = [
        ("-u 10.96.0.10:53", "10.244.0.1:5353"),
        ("-t 10.96.0.10:53", "10.244.0.1:5353"),
        ("-t 10.96.0.10:9153", ""),
    ];
    assert_eq!(
        texts,
        expected.map(|(key, reals)| (key.to_owned(), reals.to_owned()))
    );
}

#[test]
fn dual_stack_is_decided_for_each_family_by_itself() {
    let mut world = World::new("me")
        .node("me", &[(ZONE, "a")])
        .policy(weighted(&[(ZONE, 100), ("*", 0)]));
    world = world.endpoints([ep(1).zone("b")]);
    world
        .service
        .frontends
        .push(Frontend::cluster_ip("fd00::10".parse().unwrap()));
    let six = |number| at(std::net::Ipv6Addr::new(0xfd01, 0, 0, 0, 0, 0, 0, number).into());
    let mut slice_six = slice("s-6", "s", [six(1).zone("a"), six(2).zone("b")]);
    slice_six.family = Family::V6;
    world.snapshot.set_slice(slice_six);
    let servers = world.resolve().servers;
    assert_eq!(
        addresses(&servers[0].server.real_servers),
        ["10.244.0.1:8080"]
    );
    assert_eq!(addresses(&servers[1].server.real_servers), ["fd01::1:8080"]);
    assert_eq!(servers[1].server.key.to_string(), "-t [fd00::10]:80");
}

#[test]
fn a_level_is_chosen_among_endpoints_of_the_port_only() {
    let mut world = World::new("me")
        .node("me", &[(ZONE, "a")])
        .policy(weighted(&[(ZONE, 100), ("*", 0)]));
    let mut other = slice("s-1", "s", [ep(1).zone("a")]);
    other.ports = vec![slice_port("other", Protocol::Tcp, 1)];
    world.snapshot.set_slice(other);
    world
        .snapshot
        .set_slice(slice("s-2", "s", [ep(2).zone("b")]));
    assert_eq!(
        addresses(&world.server().server.real_servers),
        ["10.244.0.2:8080"]
    );
}

#[test]
fn the_zone_comes_from_the_node_and_else_from_the_slice() {
    let policy = || weighted(&[(ZONE, 100)]);
    let me = || World::new("me").node("me", &[(ZONE, "a")]).policy(policy());
    let chosen = |mut world: World| world.server().server.real_servers.len();
    assert_eq!(chosen(me().endpoints([ep(1).on("unknown").zone("a")])), 1);
    assert_eq!(
        chosen(me().node("n", &[]).endpoints([ep(1).on("n").zone("a")])),
        1
    );
    assert_eq!(
        chosen(
            me().node("n", &[(ZONE, "b")])
                .endpoints([ep(1).on("n").zone("a")])
        ),
        0
    );
    assert_eq!(chosen(me().endpoints([ep(1).zone("a")])), 1);
}

#[test]
fn pain_09_internal_traffic_policy_local_never_leaves_the_node() {
    let mut world = World::new("me").endpoints([ep(1).on("me"), ep(2).on("other")]);
    world.service.internal_traffic_policy = TrafficPolicy::Local;
    // kube-proxy would send this traffic to other nodes as soon as the Service has a node port (KP-TP-07).
    world
        .service
        .frontends
        .push(Frontend::node_port(Family::V4));
    let server = world.server();
    assert_eq!(addresses(&server.server.real_servers), ["10.244.0.1:8080"]);
    assert_eq!(
        server.decision.source,
        PolicySource::InternalTrafficPolicyLocal
    );
    assert_eq!(server.decision.endpoints[1].reason, Reason::NotLocal);
    let mut elsewhere = World::new("me").endpoints([ep(2).on("other")]);
    elsewhere.service = world.service;
    assert_eq!(
        elsewhere.server().decision.refusal,
        Some(Refusal::NoneLocal)
    );
}

#[test]
fn traffic_policy_local_goes_before_a_policy_and_does_not_need_the_node_object() {
    let mut world = World::new("me")
        .policy(weighted(&[("*", 1)]))
        .endpoints([ep(1).on("me"), ep(2)]);
    world.service.internal_traffic_policy = TrafficPolicy::Local;
    let server = world.server();
    assert_eq!(
        server.decision.source,
        PolicySource::InternalTrafficPolicyLocal
    );
    assert_eq!(addresses(&server.server.real_servers), ["10.244.0.1:8080"]);
}

#[test]
fn a_policy_goes_before_hints_and_mode_none_switches_both_off() {
    let hinted = || {
        [
            ep(1).on("me").for_zones(&["a"]),
            ep(2).on("n").for_zones(&["b"]),
        ]
    };
    let world = || {
        World::new("me")
            .node("me", &[(ZONE, "a")])
            .node("n", &[(ZONE, "b")])
            .endpoints(hinted())
    };
    assert_eq!(world().server().decision.source, PolicySource::Hints);
    assert_eq!(world().server().server.real_servers.len(), 1);
    let mut none = weighted(&[]);
    none.mode = Mode::None;
    let server = world().policy(none).server();
    assert_eq!(
        (server.decision.source, server.server.real_servers.len()),
        (PolicySource::Annotation, 2)
    );
    let mut hard = weighted(&[("node", 1)]);
    hard.mode = Mode::Hard;
    assert_eq!(
        world().policy(hard).server().decision.source,
        PolicySource::Annotation
    );
}

#[test]
fn i5_a_hard_policy_never_leaves_its_levels_even_for_serving_endpoints() {
    let world = World::new("me")
        .node("me", &[(ZONE, "a")])
        .policy(weighted(&[(ZONE, 1)]));
    let server = world
        .endpoints([
            ep(1).zone("b"),
            ep(2).zone("b").leaving(),
            ep(3).zone("a").unready(),
        ])
        .server();
    assert_eq!(server.server.real_servers, []);
    assert_eq!(server.decision.refusal, Some(Refusal::NoMatch));
    let reasons: Vec<Reason> = server
        .decision
        .endpoints
        .iter()
        .map(|endpoint| endpoint.reason)
        .collect();
    assert_eq!(
        reasons,
        [Reason::OutsideLevels, Reason::Terminating, Reason::NotReady]
    );
}

#[test]
fn every_reason_of_a_preference_is_noted() {
    let world = World::new("me").node("me", &[(ZONE, "a")]);
    let world = world.policy(weighted(&[("node", 1), (ZONE, 0), ("*", 0)]));
    let endpoints = [
        ep(1).on("me"),
        ep(2).zone("a"),
        ep(3),
        ep(4).unready(),
        ep(5).leaving(),
    ];
    let decision = world.endpoints(endpoints).server().decision;
    let reasons: Vec<_> = decision
        .endpoints
        .iter()
        .map(|endpoint| (endpoint.level.clone(), endpoint.reason))
        .collect();
    assert_eq!(
        reasons,
        [
            (Some(LevelKey::Node), Reason::InLevel),
            (
                Some(LevelKey::Label(ZONE.into())),
                Reason::NearerLevelTakesAll
            ),
            (Some(LevelKey::Any), Reason::NearerLevelTakesAll),
            (Some(LevelKey::Any), Reason::NotReady),
            (Some(LevelKey::Any), Reason::Terminating),
        ]
    );
    let counts: Vec<_> = decision
        .levels
        .iter()
        .map(|level| (level.usable, level.total))
        .collect();
    assert_eq!(counts, [(1, 1), (1, 1), (1, 3)]);
}

#[test]
fn an_empty_level_is_noted_with_its_share() {
    let world = World::new("me")
        .node("me", &[])
        .policy(weighted(&[("node", 80), ("*", 20)]));
    let decision = world.endpoints([ep(1)]).server().decision;
    let notes: Vec<String> = decision.notes.iter().map(Note::to_string).collect();
    assert_eq!(
        notes,
        ["level node has no endpoint, its 80 % go to level *"]
    );
    assert_eq!(decision.levels[0].desired.to_string(), "80 %");
    assert_eq!(decision.levels[0].share.to_string(), "0 %");
}

#[test]
fn without_ready_endpoints_all_serving_ones_are_used_equally() {
    let policy = weighted(&[("node", 80), (ZONE, 15), ("*", 5)]);
    let world = World::new("me").node("me", &[(ZONE, "a")]).policy(policy);
    let endpoints = [
        ep(1).on("me").leaving(),
        ep(2).zone("a").leaving(),
        ep(3).leaving(),
        ep(4).unready(),
    ];
    let server = world.endpoints(endpoints).server();
    let weights: Vec<u32> = server
        .server
        .real_servers
        .iter()
        .map(|real| real.weight)
        .collect();
    assert_eq!(weights, [1, 1, 1]);
    assert!(server.decision.notes.contains(&Note::ServingTerminating));
    assert_eq!(
        server.decision.endpoints[0].reason,
        Reason::ServingTerminating
    );
}

#[test]
fn capacity_counts_only_with_levels_from_annotations() {
    let big = &[("topology.ipvs-topo.io/capacity", "3")];
    let world = || {
        World::new("me")
            .node("me", &[])
            .node("n", big)
            .endpoints([ep(1).on("me"), ep(2).on("n")])
    };
    let weights = |mut world: World| {
        let mut weights: Vec<u32> = world
            .server()
            .server
            .real_servers
            .iter()
            .map(|real| real.weight)
            .collect();
        weights.sort_unstable();
        weights
    };
    assert_eq!(weights(world().policy(weighted(&[("*", 1)]))), [1, 3]);
    assert_eq!(weights(world()), [1, 1], "I1");
    let mut none = weighted(&[]);
    none.mode = Mode::None;
    assert_eq!(weights(world().policy(none)), [1, 1]);
    let mut keys = weighted(&[("*", 1)]);
    keys.source = PolicySource::TopologyKeys;
    assert_eq!(
        weights(world().policy(keys)),
        [1, 1],
        "it means what it meant"
    );
    let mut local = World::new("n")
        .node("n", big)
        .endpoints([ep(1).on("n"), ep(2).on("n")]);
    local = local.policy(weighted(&[("*", 1)]));
    local.service.internal_traffic_policy = TrafficPolicy::Local;
    assert_eq!(weights(local), [1, 1]);
}

#[test]
fn d9_a_terminating_endpoint_is_never_reported_as_not_chosen() {
    // No endpoint is ready inside the levels, and those here get everything.
    let mut hard = weighted(&[("node", 100), (ZONE, 0)]);
    hard.mode = Mode::Hard;
    let mut world = World::new("me")
        .node("me", &[(ZONE, "a")])
        .policy(hard)
        .endpoints([
            ep(1).on("me").zone("a").leaving(),
            ep(2).zone("a").leaving(),
            ep(3).zone("b").leaving(),
        ]);
    let decision = world.server().decision;
    let reasons: Vec<Reason> = decision.endpoints.iter().map(|one| one.reason).collect();
    assert_eq!(
        reasons,
        [
            Reason::ServingTerminating,
            Reason::NearerLevelTakesAll,
            Reason::Terminating
        ]
    );
    assert_eq!(decision.unchosen().count(), 0);

    // A Service with `publishNotReadyAddresses` has its endpoints ready until they are deleted.
    let mut leaving = ep(2).on("other");
    leaving.0.terminating = true;
    let mut world = World::new("me").endpoints([ep(1).on("me"), leaving, ep(3).on("other")]);
    world.service.internal_traffic_policy = TrafficPolicy::Local;
    let decision = world.server().decision;
    assert_eq!(decision.endpoints[1].reason, Reason::NotLocal);
    let unchosen: Vec<_> = decision.unchosen().collect();
    assert_eq!(unchosen, [([10, 244, 0, 3].into(), 8080)]);
}
