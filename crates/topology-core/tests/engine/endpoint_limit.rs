//! The limit of real servers of one Service.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::num::NonZeroU16;
use std::sync::Arc;

use topology_core::model::{EndpointSlice, Family, Frontend, Protocol, TrafficPolicy};
use topology_core::resolve::{Clients, Resolution};

use crate::world::{Ep, World, at, service_port, slice, slice_port};

/// The limit in the documentation.
const MOST: usize = 262_144;

/// The endpoint `10.A.B.C`.
fn endpoint(number: u32) -> Ep {
    at(IpAddr::from((0x0a00_0000 + number).to_be_bytes()))
}

/// A slice of 1,000 endpoints, the most that the API server accepts.
fn full_slice(number: u32) -> EndpointSlice {
    let endpoints = (0..1_000).map(|place| endpoint(number * 1_000 + place));
    slice(&format!("s-{number}"), "s", endpoints)
}

/// Adds `ports` ports, of which each endpoint of the slices has all.
fn set_ports(world: &mut World, slices: &mut [EndpointSlice], ports: u16) {
    let name = |port: u16| format!("p{port}");
    let ports = 1..=ports;
    let of_service = ports.clone();
    let of_service = of_service.map(|port| service_port(&name(port), Protocol::Tcp, port));
    world.service.ports = of_service.collect();
    for slice in slices {
        let of_slice = ports.clone();
        let of_slice = of_slice.map(|port| slice_port(&name(port), Protocol::Tcp, port));
        slice.ports = of_slice.collect();
    }
}

/// The real servers and the decisions of all virtual servers.
fn totals(resolution: &Resolution) -> (usize, usize) {
    let servers = resolution.servers.iter();
    let reals = servers.clone().map(|one| one.server.real_servers.len());
    let decided = servers.map(|one| one.decision.endpoints.len());
    (reals.sum(), decided.sum())
}

fn codes(resolution: &Resolution) -> Vec<&'static str> {
    let findings = resolution.findings.iter();
    findings.map(|finding| finding.kind.code()).collect()
}

/// Otherwise one Service could fill the memory of every node.
#[test]
fn d13_ten_thousand_ports_of_a_thousand_endpoints_are_not_ten_million_real_servers() {
    let mut world = World::new("me");
    let mut slices = [full_slice(1)];
    slices[0].endpoints[700].node = Some("me".into());
    let local = slices[0].endpoints[700].address;
    set_ports(&mut world, &mut slices, 10_000);
    for slice in slices {
        world.snapshot.set_slice(slice);
    }
    let resolution = world.resolve();
    assert_eq!(resolution.servers.len(), 10_000);
    assert_eq!(totals(&resolution), (260_000, 260_000));
    let addresses = |at: usize| -> BTreeSet<IpAddr> {
        let reals = resolution.servers[at].server.real_servers.iter();
        reals.map(|real| real.address).collect()
    };
    assert!(addresses(0).contains(&local));
    assert_eq!(addresses(0), addresses(9_999));
    assert_eq!(codes(&resolution), ["TooManyRealServers"]);
    let finding = resolution.findings[0].to_string();
    let expected = "Service t/s: its endpoints at all its ports and addresses are more than 262144 real servers";
    assert!(finding.starts_with(expected), "{finding}");
}

#[test]
fn d13_a_hundred_thousand_endpoints_at_two_addresses_are_below_the_limit() {
    let mut world = World::new("me");
    for number in 0..100 {
        world.snapshot.set_slice(full_slice(number));
    }
    let second = Frontend::external_ip("192.0.2.1".parse().unwrap());
    world.service.frontends.push(second);
    let resolution = world.resolve();
    assert_eq!(totals(&resolution), (200_000, 200_000));
    assert_eq!(resolution.findings, []);
}

/// The addresses of the node, and the virtual servers of outside clients, count as well.
#[test]
fn d13_node_ports_and_outside_clients_count() {
    let mut world = World::new("me");
    let mut slices = [full_slice(1)];
    slices[0].endpoints[700].node = Some("me".into());
    let local = slices[0].endpoints[700].address;
    set_ports(&mut world, &mut slices, 100);
    for slice in slices {
        world.snapshot.set_slice(slice);
    }
    world
        .service
        .frontends
        .push(Frontend::node_port(Family::V4));
    for (port, number) in world.service.ports.iter_mut().zip(30_000..) {
        port.node_port = NonZeroU16::new(number);
    }
    world.service.external_traffic_policy = TrafficPolicy::Local;
    let addresses = (1..=3).map(|last| IpAddr::from([192, 168, 1, last]));
    world.me.node_port_addresses = Arc::new(addresses.collect());
    let resolution = world.resolve();
    // The cluster IP, three addresses and the mark of each port, with 524 endpoints.
    assert_eq!(resolution.servers.len(), 500);
    let (_, decided) = totals(&resolution);
    assert_eq!(decided, 524 * 500);
    assert!(decided <= MOST);
    let outside = resolution.servers.iter();
    let outside = outside.filter(|one| one.clients == Clients::Outside);
    let outside: Vec<_> = outside.map(|one| &one.server.real_servers[..]).collect();
    assert_eq!(outside.len(), 100);
    assert!(
        outside
            .iter()
            .all(|reals| matches!(reals, [real] if real.address == local))
    );
}
