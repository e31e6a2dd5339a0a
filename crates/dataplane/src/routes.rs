//! Service addresses are `local` routes, not addresses on a link.
//!
//! One route covers a whole Service range; an address outside every range gets a /32 or /128 of its
//! own. Such a route makes the kernel deliver packets to the input hook, where IPVS takes them.
//! It carries the node's address as preferred source, so what the node itself sends to a Service
//! leaves with an address that answers can come back to, without any rule that rewrites it.
//! Our routes are known by their protocol number; routes of others are never changed.
//!
//! ```text
//! local 10.96.0.0/12 dev lo table local proto 173 scope host src 192.168.10.11
//! local 203.0.113.7  dev lo table local proto 173 scope host src 192.168.10.11
//! ```

pub mod address_monitor;
pub mod addresses;
mod apply;
mod desired;
mod diff;
pub(crate) mod link;
mod range;
pub(crate) mod rtnl;
mod wire;

pub use apply::{LinkReport, RouteError, RouteReport, RouteTable};
pub use desired::{LocalRoute, PROTOCOL, RangeRefused, desired_routes, usable_ranges};
pub use range::{covers, is_host};

/// Reads any bytes as a message, its kind first.
#[cfg(fuzzing)]
pub fn fuzz(bytes: &[u8]) {
    let Some((kind, payload)) = bytes.split_first_chunk() else {
        return;
    };
    let kind = u16::from_ne_bytes(*kind);
    let read = || wire::fuzz(kind, payload);
    assert_eq!(read(), read());
}

#[cfg(test)]
mod tests;
