//! External addresses that the node or the cluster depends on (PAIN-03).

use std::sync::Arc;

use topology_core::model::{Frontend, Node, ObjectName, Protocol};
use topology_core::resolve::{FindingKind, NodeInfrastructure};

use crate::resolution::findings;
use crate::world::{World, at, ep, node, service_port, slice};

const ADDRESS: &str = "192.0.2.1";

type Kind = fn(std::net::IpAddr) -> Frontend;
const LOAD_BALANCER: Kind = Frontend::load_balancer;
const EXTERNAL_IP: Kind = Frontend::external_ip;

/// A Service with the address, on a node with this infrastructure.
fn world(kind: Kind, infrastructure: NodeInfrastructure) -> World {
    let mut world = World::new("me").endpoints([ep(1)]);
    world.service.frontends.push(kind(ADDRESS.parse().unwrap()));
    world.me.infrastructure = Arc::new(infrastructure);
    world
}

fn gateway() -> NodeInfrastructure {
    NodeInfrastructure {
        gateways: [ADDRESS.parse().unwrap()].into(),
        ..NodeInfrastructure::default()
    }
}

fn resolver() -> NodeInfrastructure {
    NodeInfrastructure {
        resolvers: [ADDRESS.parse().unwrap()].into(),
        ..NodeInfrastructure::default()
    }
}

fn connected_at(socket: &str) -> NodeInfrastructure {
    NodeInfrastructure {
        api_servers: [socket.parse().unwrap()].into(),
        ..NodeInfrastructure::default()
    }
}

/// The endpoints of the Service `kubernetes`.
fn set_api_servers(world: &mut World, addresses: &[&str]) {
    let endpoints = addresses.iter().map(|text| at(text.parse().unwrap()));
    let mut slice = slice("kubernetes-1", "kubernetes", endpoints);
    slice.name = ObjectName::new("default", "kubernetes-1");
    slice.ports[0].port = 6443.try_into().unwrap();
    world.snapshot.set_slice(slice);
}

/// The keys of all virtual servers.
fn keys(world: &mut World) -> Vec<String> {
    let servers = world.resolve().servers.into_iter();
    servers
        .map(|server| server.server.key.to_string())
        .collect()
}

const CLUSTER_IP: &str = "-t 10.96.0.10:80";
const EXTERNAL: &str = "-t 192.0.2.1:80";

#[test]
fn pain_03_a_gateway_and_an_api_server_are_no_address_of_any_kind_and_a_resolver_no_external_ip() {
    let api = || connected_at("192.0.2.1:6443");
    let cases: [(Kind, NodeInfrastructure, Option<&str>); 6] = [
        (
            EXTERNAL_IP,
            gateway(),
            Some("external IP 192.0.2.1 is a gateway of this node's routes"),
        ),
        (
            LOAD_BALANCER,
            gateway(),
            Some("load balancer address 192.0.2.1 is a gateway of"),
        ),
        (
            EXTERNAL_IP,
            api(),
            Some("external IP 192.0.2.1 is an address of the API server"),
        ),
        (
            LOAD_BALANCER,
            api(),
            Some("load balancer address 192.0.2.1 is an address of the API"),
        ),
        (
            EXTERNAL_IP,
            resolver(),
            Some("external IP 192.0.2.1 is a resolver of this node"),
        ),
        // Administrators may publish the cluster's DNS there.
        (LOAD_BALANCER, resolver(), None),
    ];
    for (kind, infrastructure, refused) in cases {
        let mut world = world(kind, infrastructure);
        let findings = findings(&mut world);
        let Some(text) = refused else {
            assert_eq!((findings, keys(&mut world).len()), (Vec::new(), 2));
            continue;
        };
        assert_eq!(keys(&mut world), [CLUSTER_IP], "{text}");
        assert!(
            findings[0].starts_with(&format!("Service t/s: {text}")),
            "{findings:?}"
        );
        assert!(
            findings[0].ends_with("is not programmed; give the Service another"),
            "{findings:?}"
        );
    }
}

#[test]
fn pain_03_a_cluster_ip_is_served_where_the_node_reaches_the_api_server() {
    let mut world = World::new("me").endpoints([ep(1)]);
    world.me.infrastructure = Arc::new(connected_at("10.96.0.10:80"));
    assert_eq!(keys(&mut world), [CLUSTER_IP]);
}

#[test]
fn a_service_with_many_ports_has_one_finding_for_the_address() {
    let mut world = world(EXTERNAL_IP, gateway());
    let more = (81..90).map(|port| service_port(&format!("p{port}"), Protocol::Tcp, port));
    world.service.ports.extend(more);
    assert_eq!(findings(&mut world).len(), 1);
    assert_eq!(keys(&mut world).len(), 10, "the cluster IP");
}

#[test]
fn pain_03_the_api_servers_endpoints_are_known_from_its_slice_and_mark_services_as_changed() {
    let mut world = world(LOAD_BALANCER, NodeInfrastructure::default());
    assert_eq!(keys(&mut world), [CLUSTER_IP, EXTERNAL]);
    let name = world.service.name.clone();
    let mut expect = |addresses: &[&str], is_dirty: bool, refused: bool| {
        world.snapshot.take_dirty("me");
        set_api_servers(&mut world, addresses);
        let dirty = world.snapshot.take_dirty("me").services;
        assert_eq!(dirty.contains(&name), is_dirty, "{addresses:?}");
        let code = world
            .resolve()
            .findings
            .first()
            .map(|finding| finding.kind.code());
        assert_eq!(
            code,
            refused.then_some("InfrastructureAddress"),
            "{addresses:?}"
        );
    };
    expect(&["198.51.100.1"], false, false);
    expect(&["198.51.100.1", ADDRESS], true, true);
    // The Service has the endpoint 10.244.0.1.
    expect(&[ADDRESS, "10.244.0.1"], true, true);
    expect(&["198.51.100.1"], true, false);
}

#[test]
fn a_service_whose_endpoints_are_the_api_servers_is_served_at_the_address_that_the_node_connects_to()
 {
    let mut world = world(LOAD_BALANCER, connected_at("192.0.2.1:6443"));
    set_api_servers(&mut world, &["10.244.0.1", "10.244.0.2"]);
    assert_eq!(
        keys(&mut world),
        [CLUSTER_IP],
        "port 8080 is not the API server's"
    );
    let endpoints = |world: &mut World, numbers: &[u8]| {
        let mut slice = slice("s-1", "s", numbers.iter().map(|number| ep(*number)));
        slice.ports[0].port = 6443.try_into().unwrap();
        world.snapshot.set_slice(slice);
    };
    endpoints(&mut world, &[1, 2]);
    assert_eq!(keys(&mut world), [CLUSTER_IP, EXTERNAL]);
    endpoints(&mut world, &[2]);
    assert_eq!(keys(&mut world), [CLUSTER_IP, EXTERNAL]);
    endpoints(&mut world, &[2, 3]);
    assert_eq!(keys(&mut world), [CLUSTER_IP], "another endpoint");
    endpoints(&mut world, &[]);
    assert_eq!(keys(&mut world), [CLUSTER_IP]);
}

#[test]
fn at_an_address_of_the_node_only_the_port_of_the_api_server_or_the_resolver_is_refused() {
    let own = Node {
        addresses: vec![ADDRESS.parse().unwrap()],
        ..node("me", &[])
    };
    let both = || NodeInfrastructure {
        api_servers: connected_at("192.0.2.1:6443").api_servers,
        ..resolver()
    };
    let by_link = NodeInfrastructure {
        own: [ADDRESS.parse().unwrap()].into(),
        ..both()
    };
    for (node, infrastructure) in [(Some(own), both()), (None, by_link)] {
        let mut world = world(EXTERNAL_IP, infrastructure);
        if let Some(node) = node {
            world.snapshot.set_node(node);
        }
        let ports = [("api", 6443), ("dns", 53)];
        let ports = ports.map(|(name, port)| service_port(name, Protocol::Tcp, port));
        world.service.ports.extend(ports);
        let at_node = keys(&mut world).into_iter();
        let at_node: Vec<_> = at_node.filter(|key| key.contains(ADDRESS)).collect();
        assert_eq!(at_node, [EXTERNAL]);
        let findings = findings(&mut world);
        assert!(
            findings[0].contains("port api: external IP 192.0.2.1 port 6443 is an address of the"),
            "{findings:?}"
        );
        assert!(
            findings[1].contains("port 53 is a resolver"),
            "{findings:?}"
        );
    }
}

#[test]
fn d13_an_address_that_is_kept_stays_with_a_finding_and_only_with_its_service() {
    let mut world = world(EXTERNAL_IP, gateway());
    let kept = |name: ObjectName| Arc::new([(name, [ADDRESS.parse().unwrap()].into())].into());
    world.me.kept_addresses = kept(ObjectName::new("t", "other"));
    assert_eq!(keys(&mut world), [CLUSTER_IP]);
    world.me.kept_addresses = kept(world.service.name.clone());
    assert_eq!(keys(&mut world), [CLUSTER_IP, EXTERNAL]);
    let resolution = world.resolve();
    assert!(matches!(
        resolution.findings[..],
        [ref finding] if matches!(finding.kind, FindingKind::ServedInfrastructureAddress(_))
    ));
    assert_eq!(
        resolution.findings[0].to_string(),
        "Service t/s: external IP 192.0.2.1 is now a gateway of this node's routes; this node served it before and \
         continues; give the Service another address"
    );
}
