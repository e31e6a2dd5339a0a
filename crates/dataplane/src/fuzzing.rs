//! Parsers of untrusted input, for the targets in `crates/dataplane/fuzz`. Nothing else is built with `cfg(fuzzing)`.

use crate::ownership::{draining, record};
use crate::{conntrack, nftables, routes};

/// An entry of connection tracking, as the kernel lists it.
pub fn conntrack(bytes: &[u8]) {
    conntrack::fuzz(bytes);
}

/// A message of `NETLINK_ROUTE`, its kind in the first two bytes.
pub fn route(bytes: &[u8]) {
    routes::fuzz(bytes);
}

/// What `nft -j list table` prints.
pub fn nft(text: &str) {
    nftables::fuzz(text);
}

/// The ownership record.
pub fn owned(text: &str) {
    record::fuzz(text);
}

/// The record of deadlines; lines without a checksum get theirs.
pub fn draining(text: &str) {
    draining::fuzz(text);
}
