//! Compares ranges of addresses.

use topology_core::model::{Family, IpNetwork};

/// Whether every address of `inner` is in `outer`.
pub fn covers(outer: &IpNetwork, inner: &IpNetwork) -> bool {
    outer.prefix() <= inner.prefix() && outer.contains(inner.ip())
}

/// Whether the range is a single address.
pub fn is_host(range: &IpNetwork) -> bool {
    range.prefix() == Family::of_range(range).bits()
}
