//! Shortcuts for services and destinations in tests.

use std::net::SocketAddr;

use ipvs_netlink::{Destination, Forward, Protocol, ServiceId, Tunnel, TunnelFlags, TunnelKind};

pub(crate) fn id(protocol: Protocol, address: &str) -> ServiceId {
    let address: SocketAddr = address.parse().unwrap();
    ServiceId::address(protocol, address.ip(), address.port())
}

pub(crate) fn tcp(address: &str) -> ServiceId {
    id(Protocol::TCP, address)
}

pub(crate) fn real(address: &str, weight: u32) -> Destination {
    let address: SocketAddr = address.parse().unwrap();
    Destination::new(address.ip(), address.port(), weight)
}

/// A destination of weight 1 at the end of a tunnel.
pub(crate) fn tunnelled(
    address: &str,
    kind: TunnelKind,
    port: u16,
    flags: TunnelFlags,
) -> Destination {
    real(address, 1).with_forward(Forward::Tunnel(Tunnel { kind, port, flags }))
}
