//! Lists our sets, one row each: everything else about a set follows from its row.

use std::fmt;
use std::net::IpAddr;

use topology_core::model::{Family, IpNetwork, Protocol};

use crate::routes::is_host;

/// One set of our tables.
#[derive(Debug, Clone, Copy)]
pub struct SetRow {
    /// Its name in nft.
    pub name: &'static str,
    /// What its elements are.
    pub(super) key: KeyType,
    /// Whether the `arp` table has it, too.
    pub(super) in_arp: bool,
    /// Whether a family that has elements in it needs a table.
    pub(super) needs_table: bool,
    /// The element for an endpoint of this node, if the set follows endpoints: those change over netlink, without a
    /// process.
    pub(super) endpoint: Option<fn(IpAddr) -> Element>,
}

/// Declares a constant for each row, and `SETS` with all of them in the order of the tables.
macro_rules! sets {
    ($($(#[$doc:meta])* $constant:ident = $row:expr;)+) => {
        $($(#[$doc])* pub const $constant: SetRow = $row;)+
        /// Every set, in the order in which tables declare them.
        pub(super) const SETS: &[SetRow] = &[$($constant),+];
    };
}

sets! {
    /// Service ranges that have a route; addresses in them need no element of their own.
    CIDRS = SetRow { name: "cidrs", key: KeyType::Range, in_arp: true, needs_table: true, endpoint: None };
    /// Service addresses outside of those ranges.
    VIPS = SetRow { name: "vips", key: KeyType::Address, in_arp: true, needs_table: true, endpoint: None };
    /// Addresses of this machine inside of Service ranges: the rules leave them alone.
    OWN = SetRow { name: "own", key: KeyType::Address, in_arp: true, needs_table: false, endpoint: None };
    /// Endpoints on this node: a packet from one of them to itself is masqueraded.
    HAIRPIN = SetRow {
        name: "hairpin", key: KeyType::Pair, in_arp: false, needs_table: false, endpoint: Some(Element::Pair),
    };
    /// Service addresses, protocols and ports to which a new connection gets no answer at all.
    SILENT = SetRow { name: "silent", key: KeyType::Listener, in_arp: false, needs_table: false, endpoint: None };
}

/// What the elements of a set are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KeyType {
    Range,
    Address,
    Pair,
    Listener,
}

impl KeyType {
    /// The set's type and flags, as nft writes them.
    pub(super) const fn declaration(self, family: Family) -> &'static str {
        match (self, family) {
            (Self::Range, Family::V4) => "type ipv4_addr; flags interval;",
            (Self::Range, Family::V6) => "type ipv6_addr; flags interval;",
            (Self::Address, Family::V4) => "type ipv4_addr;",
            (Self::Address, Family::V6) => "type ipv6_addr;",
            (Self::Pair, Family::V4) => "type ipv4_addr . ipv4_addr;",
            (Self::Pair, Family::V6) => "type ipv6_addr . ipv6_addr;",
            (Self::Listener, Family::V4) => "type ipv4_addr . inet_proto . inet_service;",
            (Self::Listener, Family::V6) => "type ipv6_addr . inet_proto . inet_service;",
        }
    }
}

/// One element of a set. Prints as nft writes and lists it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Element {
    Range(IpNetwork),
    Address(IpAddr),
    /// The address twice: source and destination.
    Pair(IpAddr),
    /// Where a virtual server listens.
    Listener(IpAddr, Protocol, u16),
}

impl Element {
    pub(super) fn family(&self) -> Family {
        match self {
            Self::Range(range) => Family::of_range(range),
            Self::Address(ip) | Self::Pair(ip) | Self::Listener(ip, ..) => Family::of(*ip),
        }
    }
}

impl fmt::Display for Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // nft lists a range of one address without its length.
            Self::Range(range) if is_host(range) => write!(f, "{}", range.ip()),
            Self::Range(range) => write!(f, "{range}"),
            Self::Address(ip) => write!(f, "{ip}"),
            Self::Pair(ip) => write!(f, "{ip} . {ip}"),
            Self::Listener(ip, protocol, port) => {
                write!(f, "{ip} . {} . {port}", protocol_name(*protocol))
            }
        }
    }
}

/// The protocol as nft writes it.
const fn protocol_name(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::Tcp => "tcp",
        Protocol::Udp => "udp",
        Protocol::Sctp => "sctp",
    }
}
