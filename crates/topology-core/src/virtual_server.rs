//! The desired state of the kernel in IPVS terms: virtual servers and their weighted real servers.

use std::fmt;
use std::net::{IpAddr, SocketAddr};

use crate::model::{Family, Protocol};
use crate::scheduler::Scheduler;

/// The packets that a virtual server matches. Prints as the option of `ipvsadm`: `-t 10.96.0.10:80`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum VirtualServerKey {
    /// Packets to an address and port.
    Address {
        /// The protocol.
        protocol: Protocol,
        /// The virtual address.
        address: IpAddr,
        /// The port, 1 to 65,535; 0 if it stands for the name of a headless Service.
        port: u16,
    },
    /// Packets with a firewall mark.
    FirewallMark {
        /// The family of the packets.
        family: Family,
        /// The mark, not 0.
        mark: u32,
    },
}

impl VirtualServerKey {
    /// The family of the packets that it matches.
    pub const fn family(&self) -> Family {
        match self {
            Self::Address { address, .. } => Family::of(*address),
            Self::FirewallMark { family, .. } => *family,
        }
    }

    /// Whether it stands for answers of DNS, which no kernel gets: see
    /// [`resolve_headless`](crate::resolve::resolve_headless).
    pub const fn is_for_dns(&self) -> bool {
        match self {
            Self::Address { address, .. } => address.is_unspecified(),
            Self::FirewallMark { .. } => false,
        }
    }
}

impl fmt::Display for VirtualServerKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address {
                protocol,
                address,
                port,
            } => {
                let option = match protocol {
                    Protocol::Tcp => "-t",
                    Protocol::Udp => "-u",
                    Protocol::Sctp => "--sctp-service",
                };
                write!(f, "{option} {}", SocketAddr::new(*address, *port))
            }
            Self::FirewallMark {
                family: Family::V4,
                mark,
            } => write!(f, "-f {mark}"),
            Self::FirewallMark {
                family: Family::V6,
                mark,
            } => write!(f, "-f {mark} -6"),
        }
    }
}

/// A virtual server and its real servers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VirtualServer {
    /// The packets that it matches.
    pub key: VirtualServerKey,
    /// The scheduler, with the flag [`Scheduler::fallback`] if it has one.
    pub scheduler: Scheduler,
    /// Seconds that a client keeps its real server; `None` if every connection is scheduled on its own.
    pub persistence: Option<u32>,
    /// In the order in which they enter the kernel.
    pub real_servers: Vec<RealServer>,
}

/// A real server, reached by masquerading (NAT).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RealServer {
    /// The address of the pod.
    pub address: IpAddr,
    /// The port of the pod.
    pub port: u16,
    /// Weight, 0 to 65,535; 0 = no new connections.
    pub weight: u32,
}
