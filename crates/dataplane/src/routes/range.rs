//! Compares ranges of addresses.

use topology_core::model::Cidr;

/// Whether every address of `inner` is in `outer`.
pub fn covers(outer: &Cidr, inner: &Cidr) -> bool {
    outer.prefix() <= inner.prefix() && outer.contains(inner.address())
}

/// Whether the range is one address.
pub fn is_host(range: &Cidr) -> bool {
    range.prefix() == range.family().bits()
}
