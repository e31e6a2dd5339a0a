//! Current values, read from the published state at each scrape.

use std::collections::BTreeMap;

/// The most levels with share series. The rest are left out, so that a large cluster does not burden its monitoring
/// (PAIN-40).
pub const MAX_SHARE_LEVELS: usize = 2_000;

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Figures {
    /// The agent's virtual servers by family (`IPv4`, `IPv6`).
    pub virtual_servers: BTreeMap<&'static str, u64>,
    /// The agent's real servers by family and state (`active`, `draining`).
    pub real_servers: BTreeMap<(&'static str, &'static str), u64>,
    /// Foreign objects by kind (`virtual-server`).
    pub foreign: BTreeMap<&'static str, u64>,
    /// Virtual servers, routes and tables that failed and wait for a retry.
    pub waiting: u64,
    /// Warnings about the input by code.
    pub warnings: BTreeMap<String, u64>,
    /// Desired and programmed share of each level of each Service port with a policy.
    pub shares: Vec<TierShare>,
    /// When the last pass ended, by family, seconds since 1970.
    pub last_pass: BTreeMap<&'static str, f64>,
    /// When the last change was queued, by family, seconds since 1970.
    pub last_queued: BTreeMap<&'static str, f64>,
    /// Changes of Services that no pass has processed.
    pub pending_services: u64,
    /// Changes of EndpointSlices that no pass has processed.
    pub pending_slices: u64,
    /// Services with a traffic policy Local that have endpoints, but none on this node, by family and policy (`internal`
    /// or `external`).
    pub without_local_endpoints: BTreeMap<(&'static str, &'static str), u64>,
    /// Age of the oldest pending change, seconds; 0 if there is none.
    pub oldest_pending_seconds: f64,
    /// Objects read by kind.
    pub objects: BTreeMap<String, u64>,
    /// Whether the input was read once completely.
    pub input_ready: bool,
    /// The measurements of the start; `None` before the first pass is done.
    pub start: Option<Start>,
    /// The API server; `None` if the cluster is read from files.
    pub server: Option<Server>,
}

/// Requests to the API server, and their results.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Server {
    pub address: String,
    /// Requests by verb, method, resource and code (`<error>` without a response).
    pub requests: BTreeMap<(&'static str, &'static str, String, String), u64>,
    /// Bytes received by resource.
    pub bytes: BTreeMap<String, u64>,
    /// When the server last sent anything for each resource, seconds since 1970.
    pub last_received: BTreeMap<&'static str, f64>,
    /// Whether the watch of each resource is interrupted.
    pub behind: BTreeMap<&'static str, bool>,
    /// Objects of each resource that are kept although the last list does not have them.
    pub doubted: BTreeMap<&'static str, usize>,
    /// The source of other Nodes: `nodes` or `map`.
    pub node_source: &'static str,
}

/// Durations of the start, in seconds.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Start {
    /// From the start of the process to the end of the first complete read of the input.
    pub read: f64,
    /// Reading the kernel.
    pub dump: f64,
    /// Resolving every Service and comparing with the kernel.
    pub compute: f64,
    /// Sending commands to IPVS until the last acknowledgement.
    pub apply: f64,
    /// From the first complete read of the input to the end of the first pass.
    pub pass: f64,
    /// Commands sent to IPVS.
    pub writes: u64,
}

/// The share of one level of one Service port, 0 to 1.
#[derive(Debug, Clone, PartialEq)]
pub struct TierShare {
    /// `namespace/name`.
    pub service: String,
    /// The Service port's name.
    pub port: String,
    /// `IPv4` or `IPv6`.
    pub family: &'static str,
    /// The level: `node`, `zone`, a label key, `any`.
    pub tier: String,
    pub desired: f64,
    /// The share that the weights result in.
    pub programmed: f64,
}
