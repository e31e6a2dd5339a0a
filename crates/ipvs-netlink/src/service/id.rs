//! The key of a virtual service.

use std::fmt;
use std::net::{IpAddr, SocketAddr};

/// An address family.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Family {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

impl Family {
    /// The family of an address.
    pub fn of(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(_) => Self::V4,
            IpAddr::V6(_) => Self::V6,
        }
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::V4 => "IPv4",
            Self::V6 => "IPv6",
        })
    }
}

/// An IP protocol number. The kernel supports TCP, UDP and SCTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Protocol(u16);

impl Protocol {
    /// Transmission Control Protocol.
    pub const TCP: Self = Self(6);
    /// User Datagram Protocol.
    pub const UDP: Self = Self(17);
    /// Stream Control Transmission Protocol.
    pub const SCTP: Self = Self(132);

    /// Another protocol, by the number in the kernel's attribute.
    pub const fn new(number: u16) -> Self {
        Self(number)
    }

    /// The protocol number.
    pub const fn number(self) -> u16 {
        self.0
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::TCP => f.write_str("TCP"),
            Self::UDP => f.write_str("UDP"),
            Self::SCTP => f.write_str("SCTP"),
            Self(number) => write!(f, "protocol {number}"),
        }
    }
}

/// The key of a virtual service.
///
/// ```
/// use ipvs_netlink::{Family, Protocol, ServiceId};
///
/// let id = ServiceId::address(Protocol::TCP, "2001:db8::1".parse().unwrap(), 443);
/// assert_eq!(id.to_string(), "TCP [2001:db8::1]:443");
/// let mark = ServiceId::FirewallMark { family: Family::V4, mark: 7 };
/// assert_eq!(mark.to_string(), "firewall mark 7 (IPv4)");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ServiceId {
    /// Packets to one address and port (`ipvsadm -t`, `-u`, `--sctp-service`).
    Address {
        /// The transport protocol.
        protocol: Protocol,
        /// The virtual address.
        address: IpAddr,
        /// The virtual port; 0 means every port, and needs persistence to be useful.
        port: u16,
    },
    /// Packets that carry a firewall mark (`ipvsadm -f MARK`).
    FirewallMark {
        /// IPv4 or IPv6 packets (`ipvsadm -6`).
        family: Family,
        /// The mark; 0 is not a mark and is refused.
        mark: u32,
    },
}

impl ServiceId {
    /// The key of an address-and-port service.
    pub const fn address(protocol: Protocol, address: IpAddr, port: u16) -> Self {
        Self::Address {
            protocol,
            address,
            port,
        }
    }

    /// The key of a firewall-mark service.
    pub const fn firewall_mark(family: Family, mark: u32) -> Self {
        Self::FirewallMark { family, mark }
    }

    /// The family of the packets that the service matches.
    pub fn family(&self) -> Family {
        match *self {
            Self::Address { address, .. } => Family::of(address),
            Self::FirewallMark { family, .. } => family,
        }
    }
}

impl fmt::Display for ServiceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Address {
                protocol,
                address,
                port,
            } => write!(f, "{protocol} {}", SocketAddr::new(address, port)),
            Self::FirewallMark { family, mark } => write!(f, "firewall mark {mark} ({family})"),
        }
    }
}
