//! Lists our sets and maps, one row each; the code derives everything else from the row.

use std::fmt;
use std::net::IpAddr;
use std::ops::RangeInclusive;

use topology_core::model::{Family, IpNetwork, Protocol};

use super::family::TableFamily;

/// What is known of a set or map of our tables.
#[derive(Debug, Clone, Copy)]
pub(super) struct SetRow {
    /// The name in nft; with a prefix length at its end for source ranges.
    pub(super) name: &'static str,
    /// The type of its elements.
    pub(super) key: KeyType,
    /// Whether the `arp` table has the set, too.
    pub(super) in_arp: bool,
    /// Whether a family with elements in this set needs a table.
    pub(super) needs_table: bool,
}

impl SetId {
    /// The tables that hold `element`.
    pub(super) fn families_of(self, element: &Element) -> impl Iterator<Item = TableFamily> {
        let family = element.family();
        let families = TableFamily::ALL.into_iter();
        families.filter(move |table| table.addresses() == family && self.is_in(*table))
    }

    /// Whether the family's table has the set.
    pub(super) fn is_in(self, family: TableFamily) -> bool {
        self.row().in_arp || family != TableFamily::Arp
    }

    /// The set that holds `element`.
    pub(super) fn name_of(self, element: &Element) -> SetName {
        let length = match element {
            Element::SourceRange(.., range) => Some(range.prefix()),
            _ => None,
        };
        self.with_length(length)
    }

    /// The set for source ranges of this prefix length.
    pub(super) const fn with_length(self, length: Option<u8>) -> SetName {
        SetName { set: self, length }
    }
}

/// The name of a set in the kernel.
///
/// Source ranges have a set for each prefix length, instead of one set of intervals, which the kernel copies for each
/// element (`net/netfilter/nft_set_pipapo.c`). `docs/decisions/0017-source-ranges-by-length.md` has the figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SetName {
    set: SetId,
    length: Option<u8>,
}

impl SetName {
    /// Whether the set exists only for elements, or because it had some.
    pub(super) const fn is_optional(self) -> bool {
        self.length.is_some()
    }

    pub(super) const fn id(self) -> SetId {
        self.set
    }

    /// The prefix length of its source ranges.
    pub(super) const fn length(self) -> Option<u8> {
        self.length
    }
}

impl fmt::Display for SetName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { set, length } = self;
        match length {
            Some(length) => write!(f, "{set}-{length}"),
            None => write!(f, "{set}"),
        }
    }
}

impl fmt::Display for SetId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.row().name)
    }
}

/// Declares a set for each row.
macro_rules! sets {
    ($($(#[$doc:meta])* $set:ident = $row:expr;)+) => {
        /// A set or map of our tables.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum SetId { $($(#[$doc])* $set),+ }

        impl SetId {
            /// All sets, in the order in which tables declare them.
            pub(super) const ALL: &[Self] = &[$(Self::$set),+];

            pub(super) const fn row(self) -> SetRow {
                match self { $(Self::$set => $row),+ }
            }
        }
    };
}

sets! {
    /// Service ranges with a route; addresses inside them need no element of their own.
    Cidrs = SetRow { name: "cidrs", key: KeyType::Range, in_arp: true, needs_table: true };
    /// Service addresses outside of those ranges.
    Vips = SetRow { name: "vips", key: KeyType::Address, in_arp: true, needs_table: true };
    /// Addresses of this node inside Service ranges: the rules accept their traffic.
    Own = SetRow { name: "own", key: KeyType::Address, in_arp: true, needs_table: false };
    /// Endpoints on this node: packets from one of them to itself are masqueraded.
    Hairpin = SetRow { name: "hairpin", key: KeyType::Pair, in_arp: false, needs_table: false };
    /// Addresses, protocols and ports of virtual servers: no other program's NAT applies to their connections.
    Served = SetRow { name: "served", key: KeyType::Listener, in_arp: false, needs_table: false };
    /// Addresses, protocols and ports of virtual servers whose connections are masqueraded. nft refuses its own word
    /// `masquerade` as a name.
    Masquerade = SetRow { name: "masqueraded", key: KeyType::Listener, in_arp: false, needs_table: true };
    /// Service addresses, protocols and ports where new connections are dropped.
    Silent = SetRow { name: "silent", key: KeyType::Listener, in_arp: false, needs_table: false };
    /// Source addresses inside the cluster. All others are outside: the next sets and the marks are for them.
    Inside = SetRow { name: "inside", key: KeyType::Range, in_arp: false, needs_table: false };
    /// Virtual servers where new connections from outside are dropped.
    DropOutside = SetRow { name: "drop-outside", key: KeyType::Listener, in_arp: false, needs_table: true };
    /// Virtual servers that only sources in `SourceRanges` may connect to, from inside or outside.
    Firewalled = SetRow { name: "firewalled", key: KeyType::Listener, in_arp: false, needs_table: true };
    /// Sources that may connect to a virtual server of `Firewalled`.
    SourceRanges = SetRow {
        name: "source-ranges", key: KeyType::SourceRange, in_arp: false, needs_table: false,
    };
    /// Service addresses and ports where the agent itself answers health checks of load balancers.
    Health = SetRow { name: "health", key: KeyType::Listener, in_arp: false, needs_table: false };
    /// The firewall mark for packets from outside to a virtual server.
    Marks = SetRow { name: "marks", key: KeyType::Mark, in_arp: false, needs_table: true };
    /// The keys of `Marks`, which nft does not look up without setting a mark. Follows `Marks` by itself.
    Marked = SetRow { name: "marked", key: KeyType::Listener, in_arp: false, needs_table: false };
    /// Marks of other programs, by connection, while IPVS has the packet. Only rules add and delete elements.
    SavedMarks = SetRow { name: "saved-marks", key: KeyType::Saved, in_arp: false, needs_table: false };
    /// Links, each as the incoming and the outgoing one. Only rules add elements.
    SameLink = SetRow { name: "same-link", key: KeyType::Links, in_arp: false, needs_table: false };
}

/// Most elements of a set to which rules add them.
const MOST_ELEMENTS: u32 = 65_536;

/// The type of the elements of a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum KeyType {
    Range,
    Address,
    Pair,
    Listener,
    SourceRange,
    Mark,
    Saved,
    Links,
}

impl KeyType {
    /// Whether an element is a range of keys. Single elements of such a set are not changed: the old and the new ones
    /// could overlap.
    pub(super) const fn is_interval(self) -> bool {
        matches!(self, Self::Range)
    }

    /// What nft calls it.
    pub(super) const fn kind(self) -> &'static str {
        match self {
            Self::Mark | Self::Saved => "map",
            _ => "set",
        }
    }

    /// The types of its keys, and of a map's values; `None` if nft has no name for them, so that expressions stand there.
    pub(super) fn types(self, family: Family) -> Option<String> {
        let address = match family {
            Family::V4 => "ipv4_addr",
            Family::V6 => "ipv6_addr",
        };
        let listener = format!("{address} . inet_proto . inet_service");
        match self {
            Self::Range | Self::Address => Some(address.to_owned()),
            Self::Pair => Some(format!("{address} . {address}")),
            Self::Listener => Some(listener),
            Self::SourceRange => Some(format!("{listener} . {address}")),
            Self::Mark => Some(format!("{listener} : mark")),
            Self::Saved => None,
            Self::Links => Some("iface_index . iface_index".to_owned()),
        }
    }

    pub(super) const fn flags(self) -> &'static [&'static str] {
        match self {
            Self::Range => &["interval"],
            Self::Saved | Self::Links => &["dynamic", "timeout"],
            _ => &[],
        }
    }

    /// How long an element stays, in seconds.
    pub(super) const fn timeout(self) -> Option<u64> {
        match self {
            Self::Saved => Some(1),
            Self::Links => Some(60),
            _ => None,
        }
    }

    /// What a set is declared with before its elements, in nft's notation.
    pub(super) fn declaration(self, family: Family) -> String {
        let types = self.types(family).map_or_else(
            || "typeof ct id : meta mark;".to_owned(),
            |types| format!("type {types};"),
        );
        let flags = match self.flags() {
            [] => String::new(),
            flags => format!(" flags {};", flags.join(",")),
        };
        let timeout = self.timeout();
        let timeout = timeout.map(|seconds| format!(" timeout {seconds}s; size {MOST_ELEMENTS};"));
        format!("{types}{flags}{}", timeout.unwrap_or_default())
    }
}

/// An element and its set.
pub type SetElement = (SetId, Element);

/// An element of a set. Prints in nft's notation.
///
/// The address comes first in every element, so that all elements of IPv4 sort before those of IPv6.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Element {
    Range(IpNetwork),
    Address(IpAddr),
    /// The address twice: as source and as destination.
    Pair(IpAddr),
    /// Address, protocol and port of a virtual server.
    Listener(IpAddr, Protocol, u16),
    /// Address, protocol and port of a virtual server, and a range of source addresses without host bits. Ranges may
    /// overlap.
    SourceRange(IpAddr, Protocol, u16, IpNetwork),
    /// Address, protocol and port of a virtual server, and the firewall mark of its packets.
    Mark(IpAddr, Protocol, u16, u32),
}

impl Element {
    pub(super) fn family(&self) -> Family {
        match self {
            Self::Range(range) => Family::of_range(range),
            Self::Address(ip)
            | Self::Pair(ip)
            | Self::Listener(ip, ..)
            | Self::SourceRange(ip, ..)
            | Self::Mark(ip, ..) => Family::of(*ip),
        }
    }

    /// The element of `Marked` that follows an element of `Marks`.
    pub(super) const fn follower(self) -> Option<Self> {
        match self {
            Self::Mark(ip, protocol, port, _) => Some(Self::Listener(ip, protocol, port)),
            _ => None,
        }
    }

    /// All elements with the same key: a map holds one of them.
    pub(super) const fn rivals(self) -> RangeInclusive<Self> {
        match self {
            Self::Mark(ip, protocol, port, _) => {
                Self::Mark(ip, protocol, port, 0)..=Self::Mark(ip, protocol, port, u32::MAX)
            }
            other => other..=other,
        }
    }
}

impl fmt::Display for Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Range(range) => write!(f, "{range}"),
            Self::Address(ip) => write!(f, "{ip}"),
            Self::Pair(ip) => write!(f, "{ip} . {ip}"),
            Self::Listener(ip, protocol, port) => {
                write!(f, "{ip} . {} . {port}", protocol_name(*protocol))
            }
            // The set's name has the prefix length.
            Self::SourceRange(ip, protocol, port, range) => {
                let listener = Self::Listener(*ip, *protocol, *port);
                write!(f, "{listener} . {}", range.network())
            }
            Self::Mark(ip, protocol, port, mark) => {
                let listener = Self::Listener(*ip, *protocol, *port);
                write!(f, "{listener} : {mark:#010x}")
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
