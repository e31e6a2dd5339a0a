//! Forwarding methods (`IP_VS_CONN_F_*` in `include/uapi/linux/ip_vs.h`).

use std::fmt;

/// The forwarding method of a real server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Forward {
    /// Rewrites the destination address, and the source address of replies (`ipvsadm -m`).
    #[default]
    Masquerade,
    /// The real server is this host. The kernel chooses this method itself for its own addresses.
    Local,
    /// Encapsulates packets (`ipvsadm -i`).
    Tunnel(Tunnel),
    /// Sends packets unchanged to the real server's link address (`ipvsadm -g`).
    Route,
    /// Sends packets to their original destination address.
    Bypass,
    /// A method that this version of the crate does not know.
    Other(u32),
}

/// The encapsulation of packets to a real server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tunnel {
    /// The protocol of the encapsulation.
    pub kind: TunnelKind,
    /// Destination UDP port. For [`TunnelKind::Gue`] only, where the kernel refuses 0.
    pub port: u16,
    /// Checksum options, for [`TunnelKind::Gue`] and [`TunnelKind::Gre`].
    pub flags: TunnelFlags,
}

/// The encapsulation protocols (`ipvsadm --tun-type`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum TunnelKind {
    /// IP in IP.
    #[default]
    Ipip,
    /// Generic UDP encapsulation.
    Gue,
    /// Generic routing encapsulation.
    Gre,
    /// A protocol that this version of the crate does not know.
    Other(u8),
}

/// Checksum options of a tunnel. Unknown bits are kept and written back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TunnelFlags(u16);

impl TunnelFlags {
    /// Compute the outer checksum (`ipvsadm --tun-csum`).
    pub const CHECKSUM: Self = Self(1);
    /// Remote checksum offload (`ipvsadm --tun-remcsum`); GUE only.
    pub const REMOTE_CHECKSUM: Self = Self(2);

    /// The set with exactly these bits.
    pub const fn from_bits(bits: u16) -> Self {
        Self(bits)
    }

    /// The bits, as in the kernel's header.
    pub const fn bits(self) -> u16 {
        self.0
    }

    /// Whether the set contains all of `other`.
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

impl fmt::Display for Forward {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Masquerade => f.write_str("masquerade"),
            Self::Local => f.write_str("local"),
            Self::Tunnel(tunnel) => write!(f, "tunnel ({})", tunnel.kind),
            Self::Route => f.write_str("route"),
            Self::Bypass => f.write_str("bypass"),
            Self::Other(number) => write!(f, "method {number}"),
        }
    }
}

impl fmt::Display for TunnelKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ipip => f.write_str("ipip"),
            Self::Gue => f.write_str("gue"),
            Self::Gre => f.write_str("gre"),
            Self::Other(number) => write!(f, "kind {number}"),
        }
    }
}
