//! All frontends of a port: each is resolved as if it were the only one.

use std::net::IpAddr;
use std::num::NonZeroU16;
use std::sync::Arc;

use topology_core::model::{Family, Frontend, FrontendKind, TrafficPolicy};
use topology_core::resolve::ResolvedServer;
use topology_core::scheduler::Scheduler;
use topology_core::virtual_server::VirtualServerKey;

use crate::world::{World, at, ep, node, weighted};

/// The node's addresses.
const NODE: [&str; 3] = ["172.16.0.1", "172.16.0.2", "172.16.0.3"];

/// A Service with a cluster IP, a node port at `addresses`, and a load balancer address.
fn world(addresses: &[&str]) -> World {
    let mut world = World::new("me")
        .policy(weighted(&[("node", 80), ("*", 20)]))
        .endpoints([ep(1).on("me"), ep(2).on("other"), ep(3).on("other")]);
    world.snapshot.set_node(node("me", &[]));
    world.service.frontends.extend([
        Frontend::node_port(Family::V4),
        Frontend::load_balancer("192.0.2.1".parse().unwrap()),
    ]);
    world.service.ports[0].node_port = NonZeroU16::new(30_080);
    serve_at(&mut world, addresses);
    world
}

fn serve_at(world: &mut World, addresses: &[&str]) {
    let addresses = addresses.iter().map(|address| address.parse().unwrap());
    world.me.node_port_addresses = Arc::new(addresses.collect());
}

/// The virtual server of a Service with this frontend only.
fn alone(world: &mut World, kind: FrontendKind, address: IpAddr) -> ResolvedServer {
    let frontends = world.service.frontends.clone();
    let addresses = Arc::clone(&world.me.node_port_addresses);
    if kind == FrontendKind::NodePort {
        world.service.frontends = vec![Frontend::node_port(Family::of(address))];
        world.me.node_port_addresses = Arc::new([address].into());
    } else {
        world.service.frontends = vec![Frontend { kind, address }];
    }
    let server = world.server();
    world.service.frontends = frontends;
    world.me.node_port_addresses = addresses;
    server
}

/// Checks every frontend, and returns the weights of each, in their order.
fn as_alone(world: &mut World) -> Vec<Vec<u32>> {
    let servers = world.resolve().servers;
    let weights = servers.iter().map(|resolved| {
        let VirtualServerKey::Address { address, .. } = resolved.server.key else {
            panic!("{resolved:?}");
        };
        assert_eq!(*resolved, alone(world, resolved.kind, address));
        let real_servers = resolved.server.real_servers.iter();
        real_servers.map(|real| real.weight).collect()
    });
    weights.collect()
}

#[test]
fn every_frontend_gets_what_it_gets_alone() {
    for policy in [TrafficPolicy::Cluster, TrafficPolicy::Local] {
        for scheduler in [Scheduler::Wrr, Scheduler::Sh, Scheduler::Dh] {
            let mut world = world(&NODE);
            world.service.internal_traffic_policy = policy;
            world.me.scheduler = scheduler;
            let weights = as_alone(&mut world);
            assert_eq!(weights.len(), 2 + NODE.len());
            assert_eq!(
                weights[0] == weights[1],
                policy == TrafficPolicy::Cluster,
                "{weights:?}"
            );
        }
    }
}

/// The memory of earlier decisions belongs to the virtual server, and an address that is new on the node has none.
#[test]
fn an_address_without_memory_does_not_get_the_slow_start_of_the_others() {
    let [first, second, _] = NODE;
    let mut world = world(&[first]);
    let mut policy = weighted(&[("node", 80), ("*", 20)]);
    policy.slow_start = 10;
    world.service.policy = Some(policy.into());
    world.me.now = Some(0);
    let resolution = world.resolve();
    Arc::make_mut(&mut world.me.memory).store(&world.service.name, &resolution);
    let endpoints = [ep(1), ep(2), ep(3), ep(4)].map(|endpoint| endpoint.on("other"));
    let mut world = world.endpoints(endpoints);
    serve_at(&mut world, &[first, second]);
    world.me.now = Some(5_000);
    let weights = as_alone(&mut world);
    let [cluster_ip, known, new, load_balancer] = &weights[..] else {
        panic!("{weights:?}");
    };
    assert_eq!([known, load_balancer], [cluster_ip; 2]);
    assert_ne!(new, known);
}

#[test]
fn an_endpoint_that_cannot_be_a_real_server_is_reported_for_every_frontend() {
    let mut world = world(&NODE).endpoints([ep(1), at("169.254.1.1".parse().unwrap())]);
    let resolution = world.resolve();
    assert_eq!(resolution.findings.len(), resolution.servers.len());
    assert_eq!(resolution.servers.len(), 5);
}
