//! Destinations: the real servers behind a virtual service.

mod forward;

pub use forward::{Forward, Tunnel, TunnelFlags, TunnelKind};

use std::net::{IpAddr, SocketAddr};

use crate::{Stats, UnknownAttributes};

/// A real server as written to the kernel.
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
    /// Address of the real server. Only a tunnel may have another family than its service.
    pub address: IpAddr,
    /// Port of the real server. Direct routing and tunnels do not rewrite packets, so there it equals the service's
    /// port.
    pub port: u16,
    /// How packets reach the real server.
    pub forward: Forward,
    /// Share of new connections relative to the other real servers, 0 to `i32::MAX`; with 0 it gets no new connections.
    pub weight: u32,
    /// At this many connections it gets no new ones; 0 is no limit (`ipvsadm -x`).
    pub upper_threshold: u32,
    /// Below this many connections it gets new ones again; at most the upper threshold (`ipvsadm -y`).
    pub lower_threshold: u32,
    /// Attributes that this version of the crate does not know, written back unchanged.
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

    /// The same real server with another forwarding method (`ipvsadm -m`, `-g`, `-i`).
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

    /// The key of the real server within its service.
    pub fn id(&self) -> SocketAddr {
        SocketAddr::new(self.address, self.port)
    }
}

/// A real server as read from the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DestinationEntry {
    /// Its address, port and settings.
    pub destination: Destination,
    /// Established connections.
    pub active: u32,
    /// Connections in any other state, such as closing ones; UDP is counted here.
    pub inactive: u32,
    /// Persistence entries for this real server.
    pub persistent: u32,
    /// Its counters and rates.
    pub stats: Stats,
}
