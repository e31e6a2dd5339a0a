//! Manages the `local` routes for Service addresses, which are not addresses of a link.
//!
//! One route covers a whole Service range; an address outside of every range gets its own /32 or /128. Such a route
//! makes the kernel deliver packets to the input hook, where IPVS takes them. The node's address is the preferred
//! source of the route. So packets that the node itself sends to a Service have a source that replies can reach,
//! without rewriting. A protocol number marks our routes; other routes are never changed.
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
pub use desired::{
    LocalRoute, PROTOCOL, RangeRefused, RouteDelta, address_routes, desired_routes, usable_ranges,
};
pub use range::{covers, is_host};

/// Parses arbitrary bytes as a message, with its type first.
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
