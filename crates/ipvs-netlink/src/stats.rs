//! Counters and rates of services and destinations.

/// The counters of a service or destination since it was created or zeroed.
///
/// Kernels since 6.2 update the numbers every two seconds, older ones at once. Kernels since 4.1 report 64-bit
/// counters; older ones report connections and packets modulo 2^32.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Connections scheduled.
    pub connections: u64,
    /// Packets from clients.
    pub in_packets: u64,
    /// Packets to clients; 0 if they do not pass this host (direct routing, tunnels).
    pub out_packets: u64,
    /// Bytes from clients.
    pub in_bytes: u64,
    /// Bytes to clients.
    pub out_bytes: u64,
    /// The current rates, per second.
    pub rates: Rates,
}

/// Rates per second, averaged by the kernel over the last seconds (`net/netfilter/ipvs/ip_vs_est.c`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rates {
    /// Connections per second.
    pub connections: u64,
    /// Packets from clients per second.
    pub in_packets: u64,
    /// Packets to clients per second.
    pub out_packets: u64,
    /// Bytes from clients per second.
    pub in_bytes: u64,
    /// Bytes to clients per second.
    pub out_bytes: u64,
}
