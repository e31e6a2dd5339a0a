//! What load balancers learn from the health check node port of a Service.

use std::net::IpAddr;
use std::num::NonZeroU16;

use topology_core::health_check::HealthCheck;
use topology_core::model::{Family, Frontend, Protocol, SlicePort};

use crate::world::{Ep, World, at, drain, ep, slice, slice_port};

const PORT: Option<NonZeroU16> = NonZeroU16::new(30_999);

fn world(endpoints: impl IntoIterator<Item = Ep>) -> World {
    let mut world = World::new("me").endpoints(endpoints);
    world.service.health_check_node_port = PORT;
    world
}

/// The local endpoints of each family.
fn counts(world: &mut World) -> Option<[Option<usize>; 2]> {
    world.resolve();
    let check = HealthCheck::of(&world.snapshot, &world.service, "me")?;
    assert_eq!(Some(check.port), PORT);
    Some([Family::V4, Family::V6].map(|family| check.endpoints(family)))
}

/// KP-UT-038
#[test]
fn kp_hc_12_only_ready_endpoints_of_this_node_count() {
    let mut world = world([
        ep(1).on("me"),
        ep(2).on("me"),
        ep(3),
        ep(4).on("other"),
        ep(5).on("me").unready(),
        ep(6).on("me").leaving(),
    ]);
    assert_eq!(counts(&mut world), Some([Some(2), None]));
    let gone = [ep(1).on("me").unready(), ep(2).on("me").leaving()];
    world.snapshot.set_slice(slice("s-1", "s", gone));
    assert_eq!(counts(&mut world), Some([Some(0), None]));
}

#[test]
fn kp_hc_11_an_address_counts_once_with_any_number_of_slices_and_ports() {
    let mut world = world([ep(1).on("me")]);
    let mut other = slice("s-2", "s", [ep(1).on("me"), ep(2).on("me")]);
    other.ports.push(slice_port("admin", Protocol::Tcp, 9090));
    world.snapshot.set_slice(other);
    let mut without_ports = slice("s-3", "s", [ep(3).on("me")]);
    without_ports.ports = Vec::<SlicePort>::new();
    world.snapshot.set_slice(without_ports);
    assert_eq!(counts(&mut world), Some([Some(2), None]));
}

/// KP-WK-12
#[test]
fn the_families_of_a_service_are_counted_separately() {
    let mut world = world([ep(1).on("me"), ep(2).on("me")]);
    let v6: IpAddr = "fd00:10:96::10".parse().unwrap();
    world.service.frontends.push(Frontend::cluster_ip(v6));
    assert_eq!(counts(&mut world), Some([Some(2), Some(0)]));
    let mut slice = slice("s-6", "s", [at("fd00::1".parse().unwrap()).on("me")]);
    slice.family = Family::V6;
    world.snapshot.set_slice(slice);
    assert_eq!(counts(&mut world), Some([Some(2), Some(1)]));
}

/// Outside clients get local endpoints in spite of a drain.
#[test]
fn a_drain_of_this_node_changes_no_count() {
    let mut world = world([ep(1).on("me")]).node("me", &[]);
    world
        .snapshot
        .set_drain(drain("kubernetes.io/hostname", &["me"]));
    assert_eq!(counts(&mut world), Some([Some(1), None]));
}

#[test]
fn kp_in_13_a_service_without_the_port_has_no_health_check() {
    let mut world = world([ep(1).on("me")]);
    world.service.health_check_node_port = None;
    assert_eq!(counts(&mut world), None);
}
