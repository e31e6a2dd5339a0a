//! Raw readings of traffic through a node, from a client to a pod.

use serde::{Deserialize, Serialize};

/// Traffic by each path, one reading for each round. A round has one reading of every path.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TrafficReport {
    /// To the pod's address by the node's routes, before the proxy's first start.
    pub routed: Vec<PathReading>,
    /// Through the agent's virtual servers without the agent and without any nftables table; empty for other proxies.
    pub ipvs: Vec<PathReading>,
    /// The same, with conntrack and one rule of nftables that masquerades, as a node port needs.
    pub masqueraded: Vec<PathReading>,
    /// Through a cluster IP.
    pub cluster_ip: Vec<PathReading>,
    /// Through a node port.
    pub node_port: Vec<PathReading>,
    /// While nothing changes.
    pub quiet: Stall,
    /// While endpoints of other Services change, until the proxy is idle again.
    pub changing: Stall,
    /// Number of endpoints that changed.
    pub changed: u32,
}

/// The speed of one path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PathReading {
    /// New connections per second of concurrent clients; each sends one byte and receives it back.
    pub connections: f64,
    /// Median time of a connection, from `connect` until the byte is back, with no other connection.
    pub p50: f64,
    /// The 99th percentile of these times.
    pub p99: f64,
    /// Packets per second of one established connection, in both directions.
    pub packets: f64,
    /// Connections that failed.
    pub failed: u32,
}

/// The longest times in which a client got no answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Stall {
    /// How long the client sent.
    pub seconds: f64,
    /// On a connection that was established before.
    pub established: f64,
    /// With new connections, one after the other.
    pub new: f64,
    /// Connections that failed.
    pub failed: u32,
}
