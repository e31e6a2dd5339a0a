//! Destinations: the real servers behind a virtual service.

mod forward;

pub use forward::{Forward, Tunnel, TunnelFlags, TunnelKind};

use std::net::{IpAddr, SocketAddr};

use crate::{Stats, UnknownAttributes};

/// A real server as it is written to the kernel.
///
/// ```
/// use ipvs_netlink::{Destination, Forward};
///
/// let mut real = Destination::new("10.244.1.2".parse().unwrap(), 8080, 96);
/// real.upper_threshold = 1000;
/// assert_eq!(real.forward, Forward::Masquerade);
/// assert_eq!(real.id().to_string(), "10.244.1.2:8080");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub struct Destination {
    /// The real server's address. Only a tunnel may be of another family than its service.
    pub address: IpAddr,
    /// The real server's port. Direct routing and tunnels leave packets as they are, so there it is the service's own.
    pub port: u16,
    /// How packets get there.
    pub forward: Forward,
    /// The share of new connections relative to the others, 0 to `i32::MAX`; 0 takes no new connections.
    pub weight: u32,
    /// No new connections above this many; 0 is no limit (`ipvsadm -x`).
    pub upper_threshold: u32,
    /// New connections again below this many; at most the upper threshold (`ipvsadm -y`).
    pub lower_threshold: u32,
    /// Attributes that this version of the crate has no name for, kept for the way back.
    pub unknown: UnknownAttributes,
}

impl Destination {
    /// A masqueraded real server without thresholds.
    pub fn new(address: IpAddr, port: u16, weight: u32) -> Self {
        Self {
            address,
            port,
            forward: Forward::Masquerade,
            weight,
            upper_threshold: 0,
            lower_threshold: 0,
            unknown: UnknownAttributes::default(),
        }
    }

    /// The same real server reached in another way (`ipvsadm -m`, `-g`, `-i`).
    #[must_use]
    pub fn with_forward(mut self, forward: Forward) -> Self {
        self.forward = forward;
        self
    }

    /// The same real server with connection limits (`ipvsadm -x UPPER -y LOWER`).
    #[must_use]
    pub fn with_thresholds(mut self, upper: u32, lower: u32) -> Self {
        self.upper_threshold = upper;
        self.lower_threshold = lower;
        self
    }

    /// What the kernel finds the real server by within its service.
    pub fn id(&self) -> SocketAddr {
        SocketAddr::new(self.address, self.port)
    }
}

/// A real server as it was read from the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DestinationEntry {
    /// What it is.
    pub destination: Destination,
    /// Established connections.
    pub active: u32,
    /// Connections in any other state, such as closing ones; UDP counts here.
    pub inactive: u32,
    /// Persistence entries that point here.
    pub persistent: u32,
    /// What it has done so far.
    pub stats: Stats,
}
