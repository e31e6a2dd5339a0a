//! Lists our sets, one row each; the code derives everything else from the row.

use std::fmt;
use std::net::IpAddr;

use topology_core::model::{Family, IpNetwork, Protocol};

use crate::routes::is_host;

/// A set of our tables.
#[derive(Debug, Clone, Copy)]
pub struct SetRow {
    /// The name in nft.
    pub name: &'static str,
    /// The type of its elements.
    pub(super) key: KeyType,
    /// Whether the `arp` table has the set, too.
    pub(super) in_arp: bool,
    /// Whether a family with elements in this set needs a table.
    pub(super) needs_table: bool,
    /// The element for an endpoint of this node, if the set follows endpoints. Such elements are changed over netlink,
    /// without a process.
    pub(super) endpoint: Option<fn(IpAddr) -> Element>,
}

/// Declares a constant for each row, and `SETS` with all rows in the order of the tables.
macro_rules! sets {
    ($($(#[$doc:meta])* $constant:ident = $row:expr;)+) => {
        $($(#[$doc])* pub const $constant: SetRow = $row;)+
        /// All sets, in the order in which tables declare them.
        pub(super) const SETS: &[SetRow] = &[$($constant),+];
    };
}

sets! {
    /// Service ranges with a route; addresses inside them need no element of their own.
    CIDRS = SetRow { name: "cidrs", key: KeyType::Range, in_arp: true, needs_table: true, endpoint: None };
    /// Service addresses outside of those ranges.
    VIPS = SetRow { name: "vips", key: KeyType::Address, in_arp: true, needs_table: true, endpoint: None };
    /// Addresses of this node inside Service ranges: the rules accept their traffic.
    OWN = SetRow { name: "own", key: KeyType::Address, in_arp: true, needs_table: false, endpoint: None };
    /// Endpoints on this node: packets from one of them to itself are masqueraded.
    HAIRPIN = SetRow {
        name: "hairpin", key: KeyType::Pair, in_arp: false, needs_table: false, endpoint: Some(Element::Pair),
    };
    /// Service addresses, protocols and ports where new connections are dropped.
    SILENT = SetRow { name: "silent", key: KeyType::Listener, in_arp: false, needs_table: false, endpoint: None };
}

/// The type of the elements of a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KeyType {
    Range,
    Address,
    Pair,
    Listener,
}

impl KeyType {
    /// The set's type and flags, in nft's notation.
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

/// An element of a set. Prints in nft's notation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Element {
    Range(IpNetwork),
    Address(IpAddr),
    /// The address twice: as source and as destination.
    Pair(IpAddr),
    /// Address, protocol and port of a virtual server.
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
            // nft lists a range of one address without its prefix length.
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

/// The protocol in nft's notation.
const fn protocol_name(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::Tcp => "tcp",
        Protocol::Udp => "udp",
        Protocol::Sctp => "sctp",
    }
}
