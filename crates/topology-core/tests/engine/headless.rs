//! Headless Services: the endpoints of the name and of each port, by the rules of virtual servers.

use std::collections::BTreeSet;
use std::net::IpAddr;

use topology_core::memory::Memory;
use topology_core::model::{Family, Frontend, Protocol};
use topology_core::resolve::{
    HeadlessService, Resolution, ResolvedServer, Viewpoint, resolve, resolve_for_clients,
    resolve_headless,
};
use topology_core::scheduler::Scheduler;
use topology_core::virtual_server::VirtualServerKey;

use crate::world::{World, ZONE, at, drain, ep, node, service_port, slice, slice_port, weighted};

/// Seen from `n1` in zone a: one endpoint there, two in zone b, in a headless Service.
fn headless() -> World {
    let mut world = World::new("n1")
        .node("n1", &[(ZONE, "a")])
        .node("n2", &[(ZONE, "b")])
        .endpoints([ep(1).on("n1"), ep(2).on("n2"), ep(3).on("n2")]);
    world.service.frontends.clear();
    world
}

fn resolved(world: &mut World) -> Resolution {
    world.snapshot.set_service(world.service.clone());
    resolve_headless(&world.snapshot, &world.me, &world.service.name)
}

fn port_of(server: &ResolvedServer) -> u16 {
    match server.server.key {
        VirtualServerKey::Address { port, .. } => port,
        VirtualServerKey::FirewallMark { .. } => unreachable!("no outside clients"),
    }
}

/// Addresses and weights, without those of weight 0.
fn weights(server: &ResolvedServer) -> Vec<(String, u32)> {
    let endpoints = server.decision.endpoints.iter();
    let chosen = endpoints.filter(|endpoint| endpoint.weight > 0);
    chosen
        .map(|endpoint| (endpoint.address.to_string(), endpoint.weight))
        .collect()
}

fn addresses(server: &ResolvedServer) -> BTreeSet<String> {
    weights(server)
        .into_iter()
        .map(|(address, _)| address)
        .collect()
}

fn set<const N: usize>(addresses: [&str; N]) -> BTreeSet<String> {
    addresses.into_iter().map(str::to_owned).collect()
}

#[test]
fn the_name_and_the_port_get_the_weights_of_a_virtual_server() {
    let mut world = headless().policy(weighted(&[("node", 80), (ZONE, 10), ("*", 10)]));
    let servers = resolved(&mut world).servers;
    let ports: Vec<u16> = servers.iter().map(port_of).collect();
    assert_eq!(ports, [0, 80]);
    world.service.frontends = vec![Frontend::cluster_ip("10.96.0.10".parse().unwrap())];
    let virtual_server = weights(&world.server());
    assert_eq!(virtual_server.len(), 3);
    for server in &servers {
        assert_eq!(weights(server), virtual_server);
    }
}

#[test]
fn the_scheduler_and_the_affinity_of_a_service_do_not_change_the_answers() {
    let mut policy = weighted(&[("node", 99), ("*", 1)]);
    let plain = weights(&resolved(&mut headless().policy(policy.clone())).servers[0]);
    policy.scheduler = Some(Scheduler::Mh);
    let mut world = headless().policy(policy);
    world.me.scheduler = Scheduler::Rr;
    world.service.session_affinity = Some(10_800);
    for server in resolved(&mut world).servers {
        assert!(server.server.key.is_for_dns());
        assert_eq!(weights(&server), plain);
        assert_eq!(server.server.persistence, None);
    }
}

#[test]
fn clients_reach_a_service_by_dns_or_by_its_virtual_servers() {
    let mut world = headless();
    let by_dns = resolved(&mut world);
    let as_reached =
        |world: &World| resolve_for_clients(&world.snapshot, &world.me, &world.service.name);
    assert_eq!(as_reached(&world), by_dns);
    world.service.frontends = vec![Frontend::cluster_ip("10.96.0.10".parse().unwrap())];
    let virtual_server = world.server();
    assert!(!virtual_server.server.key.is_for_dns());
    assert_eq!(as_reached(&world).servers, [virtual_server]);
}

#[test]
fn a_virtual_server_is_for_no_headless_service() {
    let mut world = headless();
    world.snapshot.set_service(world.service.clone());
    assert!(world.service.is_headless());
    let resolution = resolve(&world.snapshot, &world.me, &world.service.name);
    assert_eq!(resolution, Resolution::default());
    assert_eq!(resolved(&mut world).servers.len(), 2);
}

#[test]
fn the_name_has_the_endpoints_of_every_port_and_of_no_port() {
    let mut world = headless();
    let mut other = slice("s-2", "s", [ep(9).on("n2")]);
    other.ports = vec![slice_port("admin", Protocol::Tcp, 9000)];
    world.snapshot.set_slice(other);
    let admin = service_port("admin", Protocol::Tcp, 9);
    world.service.ports.push(admin);
    let servers = resolved(&mut world).servers;
    let found: Vec<_> = servers
        .iter()
        .map(|one| (port_of(one), addresses(one)))
        .collect();
    let http = ["10.244.0.1", "10.244.0.2", "10.244.0.3"];
    let all = ["10.244.0.1", "10.244.0.2", "10.244.0.3", "10.244.0.9"];
    let expected = [(0, set(all)), (80, set(http)), (9, set(["10.244.0.9"]))];
    assert_eq!(found, expected);

    world.service.ports.clear();
    let servers = resolved(&mut world).servers;
    let found: Vec<_> = servers
        .iter()
        .map(|one| (port_of(one), addresses(one)))
        .collect();
    let of_slices = [
        (0, set(all)),
        (8080, set(http)),
        (9000, set(["10.244.0.9"])),
    ];
    assert_eq!(found, of_slices);
}

#[test]
fn ports_that_only_slices_have_get_keys_of_their_own() {
    let mut world = headless();
    for (name, port, address) in [("a", 80, 4), ("b", 8080, 5), ("c", 8080, 6)] {
        let mut other = slice(&format!("s-{name}"), "s", [ep(address).on("n1")]);
        other.ports = vec![slice_port(name, Protocol::Tcp, port)];
        world.snapshot.set_slice(other);
    }
    let servers = resolved(&mut world).servers;
    let names: Vec<&str> = servers.iter().map(|one| &*one.port_name).collect();
    assert_eq!(names, ["http", "http", "a", "b", "c"]);
    let keys: BTreeSet<_> = servers.iter().map(|one| one.server.key).collect();
    assert_eq!(keys.len(), servers.len(), "{keys:?}");
    let of_slices: Vec<_> = servers[2..].iter().map(addresses).collect();
    assert_eq!(
        of_slices,
        ["10.244.0.4", "10.244.0.5", "10.244.0.6"].map(|one| set([one]))
    );
}

#[test]
fn endpoints_that_are_not_ready_are_published_if_the_service_says_so() {
    let mut world = headless();
    let slices = slice("s-1", "s", [ep(1).on("n1"), ep(2).on("n2").unready()]);
    world.snapshot.set_slice(slices);
    let ready = set(["10.244.0.1"]);
    assert_eq!(addresses(&resolved(&mut world).servers[0]), ready);
    world.service.publish_not_ready_addresses = true;
    let all = set(["10.244.0.1", "10.244.0.2"]);
    assert_eq!(addresses(&resolved(&mut world).servers[0]), all);
}

#[test]
fn a_hard_policy_a_drain_and_another_node_change_the_answer() {
    let mut policy = weighted(&[(ZONE, 100)]);
    policy.mode = topology_core::policy::Mode::Hard;
    let mut world = headless().policy(policy);
    assert_eq!(
        addresses(&resolved(&mut world).servers[0]),
        set(["10.244.0.1"])
    );
    world.me = Viewpoint::new("n2");
    let far = set(["10.244.0.2", "10.244.0.3"]);
    assert_eq!(addresses(&resolved(&mut world).servers[0]), far);

    let mut world = headless();
    world.snapshot.set_drain(drain(ZONE, &["b"]));
    assert_eq!(
        addresses(&resolved(&mut world).servers[0]),
        set(["10.244.0.1"])
    );
}

#[test]
fn both_families_are_decided() {
    let mut world = headless();
    let v6: IpAddr = "fd00::1".parse().unwrap();
    let mut slice = slice("s-6", "s", [at(v6).on("n1")]);
    slice.family = Family::V6;
    world.snapshot.set_slice(slice);
    let servers = resolved(&mut world).servers;
    let families: Vec<_> = servers
        .iter()
        .map(|one| (one.server.key.family(), port_of(one)))
        .collect();
    let expected = [
        (Family::V4, 0),
        (Family::V4, 80),
        (Family::V6, 0),
        (Family::V6, 80),
    ];
    assert_eq!(families, expected);
    assert_eq!(addresses(&servers[2]), set(["fd00::1"]));
}

#[test]
fn changes_for_every_node_name_services_and_tell_whether_nodes_changed() {
    let mut world = headless();
    world.snapshot.set_service(world.service.clone());
    assert!(world.snapshot.has_services_in("t"));
    assert!(!world.snapshot.has_services_in("tt"));
    let changes = world.snapshot.take_changes();
    assert!(changes.nodes);
    assert_eq!(changes.services, [world.service.name.clone()].into());
    assert_eq!(
        world.snapshot.take_changes(),
        topology_core::snapshot::Changes::default()
    );

    world
        .snapshot
        .set_slice(slice("s-1", "s", [ep(1).on("n1")]));
    let changes = world.snapshot.take_changes();
    assert!(!changes.nodes);
    assert_eq!(changes.services.len(), 1);
    world.snapshot.set_node(node("n2", &[(ZONE, "c")]));
    assert!(world.snapshot.take_changes().nodes);
    world.snapshot.set_drain(drain(ZONE, &["c"]));
    assert!(world.snapshot.take_changes().nodes);
    world.snapshot.remove_service(&world.service.name);
    assert!(!world.snapshot.has_services_in("t"));
}

/// A headless Service with two named ports and one of slices, in both families, and with slow start.
fn with_ports() -> World {
    let mut policy = weighted(&[("node", 80), ("*", 20)]);
    policy.slow_start = 100;
    let mut world = headless().policy(policy);
    world.me.now = Some(0);
    let admin = service_port("admin", Protocol::Tcp, 9);
    world.service.ports.push(admin);
    let mut other = slice("s-2", "s", [ep(9).on("n2")]);
    other.ports = vec![
        slice_port("admin", Protocol::Tcp, 9000),
        slice_port("more", Protocol::Udp, 9001),
    ];
    world.snapshot.set_slice(other);
    let mut v6 = slice("s-6", "s", [at("fd00::1".parse().unwrap()).on("n1")]);
    v6.family = Family::V6;
    world.snapshot.set_slice(v6);
    world.snapshot.set_service(world.service.clone());
    world
}

fn by_key(mut servers: Vec<ResolvedServer>) -> Vec<ResolvedServer> {
    servers.sort_by_key(|server| server.server.key);
    servers
}

#[test]
fn the_name_and_each_port_alone_are_resolved_as_all_together() {
    let mut world = with_ports();
    for published in [false, true] {
        world.service.publish_not_ready_addresses = published;
        let whole = resolved(&mut world).servers;
        assert_eq!(whole.len(), 6);
        let name = &world.service.name;
        let service = HeadlessService::find(&world.snapshot, &world.me, name).unwrap();
        let mut alone = service.resolve_name().servers;
        assert_eq!(alone.len(), 2);
        for port in &*service.ports() {
            alone.extend(service.resolve_port(port).servers);
        }
        assert_eq!(by_key(alone), by_key(whole));
    }
}

#[test]
fn parts_of_a_service_remember_their_servers_alone() {
    let mut world = with_ports();
    let whole = resolved(&mut world);
    let name = world.service.name.clone();
    let mut expected = Memory::default();
    expected.store(&name, &whole);
    let mut memory = Memory::default();
    for server in whole.servers {
        assert!(server.memory.is_some());
        let servers = vec![server];
        let part = Resolution {
            servers,
            ..Resolution::default()
        };
        memory.store_part(&name, &part);
    }
    assert_eq!(memory, expected);
    let mut part = resolved(&mut world);
    part.servers.truncate(1);
    part.servers[0].memory = None;
    let key = part.servers[0].server.key;
    memory.store_part(&name, &part);
    assert_eq!(memory.of(&name, &key), None);
    assert_ne!(memory, Memory::default());
}
