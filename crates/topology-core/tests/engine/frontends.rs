//! Virtual servers and real servers: owners, refused ones, and their order.

use std::num::NonZeroU16;
use std::sync::Arc;

use topology_core::model::{Family, Frontend, Node, ObjectName, Protocol, TrafficPolicy};
use topology_core::resolve::{Reason, ResolvedServer, Viewpoint, resolve};
use topology_core::scheduler::Scheduler;
use topology_core::virtual_server::{RealServer, VirtualServerKey};

use crate::resolution::{addresses, findings};
use crate::world::{World, at, ep, node, service, service_port, slice};

#[test]
fn kp_sy_18_of_two_services_with_one_address_and_port_the_older_keeps_it() {
    let mut world = World::new("me").endpoints([ep(1)]);
    let mut older = service("zz", "10.96.0.10");
    older.created = Some(1_000);
    world.snapshot.set_service(older);
    world.service.created = Some(2_000);
    let resolution = world.resolve();
    assert_eq!(resolution.servers, []);
    let finding = resolution.findings[0].to_string();
    assert!(
        finding.starts_with(
            "Service t/s port http: TCP 10.96.0.10:80 belongs to the older Service t/zz"
        ),
        "{finding}"
    );
    let older = resolve(&world.snapshot, &world.me, &ObjectName::new("t", "zz"));
    assert_eq!((older.servers.len(), older.findings.len()), (1, 0));
}

#[test]
fn kp_sy_18_of_two_services_that_are_equally_old_the_first_by_name_keeps_the_address() {
    for created in [None, Some(1_000)] {
        let mut world = World::new("me").endpoints([ep(1)]);
        let mut first = service("a", "10.96.0.10");
        first.created = created;
        world.snapshot.set_service(first);
        world.service.created = created;
        let resolution = world.resolve();
        assert_eq!(resolution.servers, []);
        let finding = resolution.findings[0].to_string();
        let expected =
            "TCP 10.96.0.10:80 belongs to Service t/a, which is first by name; give one of them";
        assert!(finding.contains(expected), "{finding}");
        let first = resolve(&world.snapshot, &world.me, &ObjectName::new("t", "a"));
        assert_eq!((first.servers.len(), first.findings.len()), (1, 0));
    }
}

/// The virtual servers of the Service, as `ipvsadm` prints their keys, and the number of real servers of each.
fn programmed(world: &mut World) -> Vec<(String, usize)> {
    let servers = world.resolve().servers.into_iter();
    servers
        .map(|resolved| {
            (
                resolved.server.key.to_string(),
                resolved.server.real_servers.len(),
            )
        })
        .collect()
}

fn with_node_port(world: &mut World, families: &[Family]) {
    let frontends = families.iter().copied().map(Frontend::node_port);
    world.service.frontends.extend(frontends);
    world.service.ports[0].node_port = NonZeroU16::new(30_080);
    let addresses = ["192.168.1.1", "172.16.0.1", "2001:db8::1"];
    let addresses = addresses.map(|address| address.parse().unwrap());
    world.me.node_port_addresses = Arc::new(addresses.into());
}

/// KP-VS-04
#[test]
fn kp_vs_04_a_node_port_is_served_at_every_address_of_the_node_in_its_families() {
    let mut world = World::new("me").endpoints([ep(1)]);
    with_node_port(&mut world, &[Family::V4]);
    let expected = [
        "-t 10.96.0.10:80",
        "-t 172.16.0.1:30080",
        "-t 192.168.1.1:30080",
    ];
    let v4 = expected.map(|key| (key.to_owned(), 1));
    assert_eq!(programmed(&mut world), v4);

    world
        .service
        .frontends
        .push(Frontend::node_port(Family::V6));
    let v6 = ("-t [2001:db8::1]:30080".to_owned(), 0);
    assert_eq!(programmed(&mut world), [&v4[..], &[v6]].concat());

    world.service.ports[0].node_port = None;
    assert_eq!(programmed(&mut world), v4[..1]);
}

fn real_servers(world: &mut World) -> Vec<usize> {
    programmed(world)
        .into_iter()
        .map(|(_, count)| count)
        .collect()
}

#[test]
fn the_internal_traffic_policy_is_not_that_of_node_ports() {
    let mut world = World::new("me").endpoints([ep(1).on("me"), ep(2).on("other")]);
    with_node_port(&mut world, &[Family::V4]);
    world.service.internal_traffic_policy = TrafficPolicy::Local;
    assert_eq!(real_servers(&mut world), [1, 2, 2]);
}

/// KP-WK-01, design D7: inside clients get all endpoints, outside clients those of this node.
#[test]
fn d7_external_traffic_policy_local_gives_outside_clients_a_mark_and_the_local_endpoints() {
    let mut world = World::new("me").endpoints([ep(1).on("me"), ep(2).on("other")]);
    with_node_port(&mut world, &[Family::V4]);
    let vip = Frontend::load_balancer("192.0.2.1".parse().unwrap());
    world.service.frontends.push(vip);
    world.service.external_traffic_policy = TrafficPolicy::Local;
    let servers = world.resolve().servers;
    let outside = servers.last().unwrap();
    assert_eq!(real_servers(&mut world), [2, 2, 2, 2, 1]);
    assert!(matches!(
        outside.server.key,
        VirtualServerKey::FirewallMark {
            family: Family::V4,
            ..
        }
    ));
    assert_eq!(outside.server.real_servers[0].address, ep(1).0.address);
    let marked: Vec<String> = outside.marked.iter().map(ToString::to_string).collect();
    let expected = [
        "TCP 172.16.0.1:30080",
        "TCP 192.168.1.1:30080",
        "TCP 192.0.2.1:80",
    ];
    assert_eq!(marked, expected);

    world
        .snapshot
        .set_slice(slice("s-1", "s", [ep(2).on("other")]));
    assert_eq!(real_servers(&mut world), [1, 1, 1, 1, 0]);
    world.service.external_traffic_policy = TrafficPolicy::Cluster;
    assert_eq!(real_servers(&mut world), [1, 1, 1, 1]);
}

/// The kernel does not map the port of a persistent connection to a virtual server of a mark.
#[test]
fn d7_session_affinity_of_outside_clients_is_a_hash_of_their_address() {
    let mut world = World::new("me").endpoints([ep(1).on("me"), ep(2).on("other")]);
    with_node_port(&mut world, &[Family::V4]);
    world.service.external_traffic_policy = TrafficPolicy::Local;
    world.service.session_affinity = Some(10_800);
    let mut servers = world.resolve().servers;
    let outside = servers.pop().unwrap().server;
    assert_eq!(
        (outside.persistence, outside.scheduler),
        (None, Scheduler::Mh)
    );
    let persistent = |server: &ResolvedServer| server.server.persistence == Some(10_800);
    assert!(servers.iter().all(persistent));
}

/// PAIN-03: the declared port of an address of this node is served, an address of another node is left to it.
#[test]
fn t03_an_external_address_may_belong_to_this_node_and_to_no_other() {
    let mut world = World::new("me").endpoints([ep(1)]);
    let address = "192.168.1.7".parse().unwrap();
    world.service.frontends = vec![Frontend::external_ip(address)];
    let with_address = |name: &str| Node {
        addresses: vec![address],
        ..node(name, &[])
    };
    world.snapshot.set_node(with_address("other"));
    assert_eq!(programmed(&mut world), []);
    assert!(
        findings(&mut world)[0].contains("external IP 192.168.1.7 is an address of Node other")
    );
    world.snapshot.set_node(with_address("me"));
    assert_eq!(
        programmed(&mut world),
        [("-t 192.168.1.7:80".to_owned(), 1)]
    );
}

/// CVE-2020-8554: an older Service cannot take the cluster IP of another one.
#[test]
fn an_external_address_never_takes_a_cluster_ip() {
    let mut world = World::new("me").endpoints([ep(1)]);
    world.service.created = Some(1_000);
    world
        .service
        .frontends
        .push(Frontend::load_balancer("10.96.0.11".parse().unwrap()));
    let mut other = service("dns", "10.96.0.11");
    other.created = Some(2_000);
    world.snapshot.set_service(other);
    assert_eq!(programmed(&mut world), [("-t 10.96.0.10:80".to_owned(), 1)]);
    let found = findings(&mut world);
    assert!(
        found[0].contains("TCP 10.96.0.11:80 is the cluster IP of Service t/dns"),
        "{found:?}"
    );
}

#[test]
fn kp_sy_18_of_two_services_with_one_node_port_the_older_keeps_it() {
    let mut world = World::new("me").endpoints([ep(1)]);
    with_node_port(&mut world, &[Family::V4]);
    let mut older = service("zz", "10.96.0.11");
    older.created = Some(1_000);
    older.frontends.push(Frontend::node_port(Family::V4));
    older.ports[0].node_port = NonZeroU16::new(30_080);
    world.snapshot.set_service(older);
    world.service.created = Some(2_000);
    assert_eq!(programmed(&mut world), [("-t 10.96.0.10:80".to_owned(), 1)]);
    let found = findings(&mut world);
    assert!(
        found[0].contains("TCP node port 30080 of IPv4 belongs to the older Service t/zz"),
        "{found:?}"
    );
    world.service.ports[0].protocol = Protocol::Udp;
    assert_eq!(findings(&mut world), Vec::<String>::new());
}

/// A tenant who may publish a Service at an address of the node must not take node ports of other tenants.
#[test]
fn d13_of_a_node_port_and_an_external_address_of_the_node_the_older_keeps_the_port() {
    let mut world = World::new("me").endpoints([ep(1)]);
    with_node_port(&mut world, &[Family::V4]);
    let mut other = service("lb", "10.96.0.11");
    let address = "192.168.1.1".parse().unwrap();
    other.frontends.push(Frontend::load_balancer(address));
    other.ports[0].port = NonZeroU16::new(30_080).unwrap();
    let key = "-t 192.168.1.1:30080";
    for (created, others, keeps) in [(1_000, 2_000, true), (2_000, 1_000, false)] {
        world.service.created = Some(created);
        other.created = Some(others);
        world.snapshot.set_service(other.clone());
        let keys = programmed(&mut world).into_iter().map(|(key, _)| key);
        let keys: Vec<String> = keys.collect();
        assert_eq!(keys.iter().any(|one| one == key), keeps, "{keys:?}");
        assert!(keys.iter().any(|one| one == "-t 172.16.0.1:30080"));
        let published = resolve(&world.snapshot, &world.me, &other.name);
        let mut resolved = published.servers.iter();
        let serves = resolved.any(|resolved| resolved.server.key.to_string() == key);
        assert_eq!(serves, !keeps);
        let (found, expected) = if keeps {
            let found = published.findings[0].to_string();
            (
                found,
                "TCP node port 30080 of IPv4 belongs to the older Service t/s",
            )
        } else {
            let found = findings(&mut world)[0].clone();
            (
                found,
                "TCP 192.168.1.1:30080 belongs to the older Service t/lb",
            )
        };
        assert!(found.contains(expected), "{found}");
    }
}

#[test]
fn t03_a_cluster_ip_that_is_a_nodes_own_address_is_not_programmed() {
    let mut world = World::new("me").endpoints([ep(1)]);
    let mut with_address = node("n1", &[]);
    with_address.addresses = vec!["10.96.0.10".parse().unwrap()];
    world.snapshot.set_node(with_address);
    assert_eq!(world.resolve().servers, []);
    assert!(findings(&mut world)[0].contains("10.96.0.10 is an address of Node n1"));
}

/// A kubelet writes the addresses of its Node itself.
#[test]
fn d13_inside_the_service_ranges_only_this_nodes_own_claim_keeps_a_service_away() {
    let mut world = World::new("me").endpoints([ep(1)]);
    let claims = |name: &str| Node {
        addresses: vec!["10.96.0.10".parse().unwrap()],
        ..node(name, &[])
    };
    world.snapshot.set_node(claims("n1"));
    let ranges = |text: &str| vec![text.parse().unwrap()];
    world.snapshot.set_service_cidrs(ranges("10.96.0.0/12"));
    assert_eq!(world.resolve().servers.len(), 1);
    assert_eq!(world.resolve().findings, []);
    world.snapshot.set_service_cidrs(ranges("10.200.0.0/16"));
    assert_eq!(world.resolve().servers, [], "outside of the ranges");
    world.snapshot.set_service_cidrs(ranges("10.96.0.0/12"));
    world.snapshot.set_node(claims("me"));
    assert_eq!(world.resolve().servers, []);
    assert!(findings(&mut world)[0].contains("10.96.0.10 is an address of Node me"));
}

#[test]
fn an_endpoint_that_cannot_be_a_real_server_is_reported_and_skipped() {
    let bad = [
        "127.0.0.1",
        "169.254.1.1",
        "0.0.0.0",
        "224.0.0.1",
        "255.255.255.255",
        "fd00::1",
    ];
    let mut endpoints = vec![ep(1)];
    endpoints.extend(bad.map(|address| at(address.parse().unwrap())));
    let mut world = World::new("me").endpoints(endpoints);
    let server = world.server();
    assert_eq!(addresses(&server.server.real_servers), ["10.244.0.1:8080"]);
    let excluded: Vec<_> = server
        .decision
        .endpoints
        .iter()
        .filter(|endpoint| !endpoint.is_chosen())
        .collect();
    assert_eq!(excluded.len(), bad.len());
    assert!(
        excluded
            .iter()
            .all(|endpoint| endpoint.reason == Reason::BadAddress)
    );
    let findings = findings(&mut world);
    for address in bad {
        assert!(
            findings
                .iter()
                .any(|finding| finding.contains(&format!("endpoint {address} is"))),
            "{findings:#?}"
        );
    }
}

#[test]
fn an_invalid_cluster_ip_is_reported_and_not_programmed() {
    for bad in [
        "127.0.0.1",
        "0.0.0.0",
        "224.0.0.1",
        "255.255.255.255",
        "::1",
        "ff02::1",
    ] {
        let mut world = World::new("me").endpoints([ep(1)]);
        world.service.frontends = vec![Frontend::cluster_ip(bad.parse().unwrap())];
        assert_eq!(world.resolve().servers, [], "{bad}");
        assert!(
            findings(&mut world)[0].contains(&format!("clusterIP {bad} is")),
            "{:?}",
            findings(&mut world)
        );
    }
}

#[test]
fn two_ports_with_one_number_and_protocol_are_one_virtual_server_and_a_finding() {
    let mut world = World::new("me").endpoints([ep(1)]);
    world
        .service
        .ports
        .push(service_port("again", Protocol::Tcp, 80));
    let resolution = world.resolve();
    assert_eq!(resolution.servers.len(), 1);
    assert_eq!(&*resolution.servers[0].port_name, "http");
    assert!(
        resolution.findings[0]
            .to_string()
            .starts_with("Service t/s port again:")
    );
}

#[test]
fn session_affinity_and_scheduler_reach_the_virtual_server() {
    let mut world = World::new("me");
    world.service.session_affinity = Some(10_800);
    world.me = Viewpoint {
        scheduler: Scheduler::Mh,
        ..Viewpoint::new("me")
    };
    let server = world.server().server;
    assert_eq!(
        (server.persistence, server.scheduler),
        (Some(10_800), Scheduler::Mh)
    );
}

/// The order must be the same on every machine and in every version: an upgrade that reordered real servers would send
/// the first connections of all nodes to other real servers at the same time.
#[test]
fn pain_24_nodes_begin_with_different_real_servers_in_an_order_that_never_changes() {
    let order = |me: &str| {
        let server = World::new(me).endpoints((1..=5).map(ep)).server().server;
        let last = |real: &RealServer| {
            real.address
                .to_string()
                .rsplit('.')
                .next()
                .map(str::to_owned)
        };
        server
            .real_servers
            .iter()
            .filter_map(last)
            .collect::<Vec<_>>()
            .join(" ")
    };
    let orders: Vec<String> = ["n1", "n2", "n3", "n4"].map(order).to_vec();
    assert_eq!(orders, ["1 4 3 2 5", "4 3 1 2 5", "5 4 1 2 3", "4 5 1 2 3"]);
    let firsts: std::collections::BTreeSet<_> = (0..100)
        .map(|n| order(&format!("n{n}"))[..1].to_owned())
        .collect();
    assert_eq!(firsts.len(), 5, "every endpoint is first on some node");
}

#[test]
fn real_servers_go_to_the_key_of_their_frontend() {
    let server = World::new("me").endpoints([ep(1)]).server().server;
    let expected = VirtualServerKey::Address {
        protocol: Protocol::Tcp,
        address: "10.96.0.10".parse().unwrap(),
        port: 80,
    };
    assert_eq!(server.key, expected);
}
