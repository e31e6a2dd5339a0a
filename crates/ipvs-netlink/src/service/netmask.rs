//! The part of a client's address that persistence compares.

use std::fmt;
use std::net::Ipv4Addr;

use super::Family;

/// A persistence netmask: clients with the same masked address share one real server.
///
/// The kernel uses a bit mask for IPv4 and a prefix length for IPv6 (`ip_vs_add_service` in
/// `net/netfilter/ipvs/ip_vs_ctl.c`), both in the same attribute.
///
/// ```
/// use ipvs_netlink::{Family, Netmask};
///
/// let mask = Netmask::prefix(Family::V4, 24).unwrap();
/// assert_eq!(mask.to_string(), "255.255.255.0");
/// assert_eq!(mask.prefix_length(), Some(24));
/// assert_eq!(Netmask::prefix(Family::V6, 129), None);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Netmask {
    /// An IPv4 mask. The kernel does not require leading ones, so any mask can be read.
    V4(Ipv4Addr),
    /// An IPv6 prefix length, 1 to 128; the kernel refuses others.
    V6(u32),
}

impl Netmask {
    /// The mask of a single client: 255.255.255.255 or 128.
    pub const fn host(family: Family) -> Self {
        match family {
            Family::V4 => Self::V4(Ipv4Addr::BROADCAST),
            Family::V6 => Self::V6(128),
        }
    }

    /// The mask of a prefix length; `None` if the family has no such length.
    pub fn prefix(family: Family, length: u8) -> Option<Self> {
        match (family, u32::from(length)) {
            (Family::V4, length @ 0..=32) => {
                let bits = u32::MAX.checked_shl(32 - length).unwrap_or(0);
                Some(Self::V4(Ipv4Addr::from_bits(bits)))
            }
            (Family::V6, length @ 1..=128) => Some(Self::V6(length)),
            _ => None,
        }
    }

    /// The prefix length; `None` for an IPv4 mask with holes or an IPv6 length beyond 128.
    pub fn prefix_length(self) -> Option<u8> {
        match self {
            Self::V4(mask) => {
                let ones = mask.to_bits().leading_ones();
                (ones == mask.to_bits().count_ones()).then_some(ones)
            }
            Self::V6(length) => Some(length).filter(|length| *length <= 128),
        }
        .and_then(|length| u8::try_from(length).ok())
    }
}

impl fmt::Display for Netmask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::V4(mask) => mask.fmt(f),
            Self::V6(length) => length.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_ipv4_prefix_length_survives_its_mask() {
        for length in 0..=32 {
            let mask = Netmask::prefix(Family::V4, length).unwrap();
            assert_eq!(mask.prefix_length(), Some(length));
        }
    }

    #[test]
    fn a_mask_with_holes_has_no_prefix_length() {
        assert_eq!(
            Netmask::V4(Ipv4Addr::new(255, 0, 255, 0)).prefix_length(),
            None
        );
    }
}
