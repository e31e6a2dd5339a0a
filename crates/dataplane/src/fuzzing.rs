//! Parsers of untrusted input, for the targets in `crates/dataplane/fuzz`. Nothing else is built with `cfg(fuzzing)`.

use crate::ownership::{draining, marks, record, settings};
use crate::{conntrack, nftables, routes};

/// A connection tracking entry, as the kernel lists it.
pub fn conntrack(bytes: &[u8]) {
    conntrack::fuzz(bytes);
}

/// A message of `NETLINK_ROUTE`; the first two bytes are its type.
pub fn route(bytes: &[u8]) {
    routes::fuzz(bytes);
}

/// Elements of a set, as the kernel lists them.
pub fn elements(bytes: &[u8]) {
    nftables::fuzz_elements(bytes);
}

/// The attributes of a table, chain, rule or set, as the kernel lists them.
pub fn table(bytes: &[u8]) {
    nftables::fuzz_table(bytes);
}

/// The ownership record.
pub fn owned(text: &str) {
    record::fuzz(text);
}

/// The record of deadlines. Lines without a checksum get one.
pub fn draining(text: &str) {
    draining::fuzz(text);
}

/// The record of firewall marks. Lines without a checksum get one.
pub fn marks(text: &str) {
    marks::fuzz(text);
}

/// The record of changed settings. Lines without a checksum get one.
pub fn settings(text: &str) {
    settings::fuzz(text);
}
