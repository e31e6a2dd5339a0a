//! How packets reach a real server (`IP_VS_CONN_F_*` in `include/uapi/linux/ip_vs.h`).

use std::fmt;

/// The forwarding method of a real server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Forward {
    /// Rewrite the destination address and back (`ipvsadm -m`).
    #[default]
    Masquerade,
    /// The real server is this host; the kernel picks it by itself for its own addresses.
    Local,
    /// Wrap packets whole (`ipvsadm -i`).
    Tunnel(Tunnel),
    /// Send packets unchanged to the real server's link address (`ipvsadm -g`).
    Route,
    /// Send packets to where their own destination address leads.
    Bypass,
    /// A method that this version of the crate has no name for.
    Other(u32),
}

/// How packets are wrapped on their way to a real server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tunnel {
    /// The wrapping.
    pub kind: TunnelKind,
    /// UDP port of the far end; [`TunnelKind::Gue`] only, where 0 is refused.
    pub port: u16,
    /// Checksum options; [`TunnelKind::Gue`] and [`TunnelKind::Gre`].
    pub flags: TunnelFlags,
}

/// The kinds of tunnel (`ipvsadm --tun-type`).
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
    /// A kind that this version of the crate has no name for.
    Other(u8),
}

/// Checksum options of a tunnel. Bits without a name here are kept and written back.
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

    /// Whether all of `other` is in the set.
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
