//! Names the nftables families that have a table of ours.

use topology_core::model::Family;

/// The nftables families that have a table of ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum TableFamily {
    /// IPv4 packets.
    Ip,
    /// IPv6 packets.
    Ip6,
    /// ARP requests and replies for IPv4 addresses.
    Arp,
}

impl TableFamily {
    pub const ALL: [Self; 3] = [Self::Ip, Self::Ip6, Self::Arp];

    /// The family in nft's notation.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ip => "ip",
            Self::Ip6 => "ip6",
            Self::Arp => "arp",
        }
    }

    /// The address family of the elements of its sets.
    pub(super) fn addresses(self) -> Family {
        match self {
            Self::Ip | Self::Arp => Family::V4,
            Self::Ip6 => Family::V6,
        }
    }
}
