//! What is, rather than what happened: filled from the published state at each scrape.

use std::collections::BTreeMap;

/// At most this many Services get their own share series; the rest are left out, so that a large cluster does
/// not burden its monitoring (PAIN-40).
pub const MAX_SHARE_SERVICES: usize = 500;

/// The figures of one moment.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Figures {
    /// Virtual servers of ours by family (`IPv4`, `IPv6`).
    pub virtual_servers: BTreeMap<&'static str, u64>,
    /// Real servers of ours by family and state (`active`, `draining`).
    pub real_servers: BTreeMap<(&'static str, &'static str), u64>,
    /// What is not ours by kind (`virtual-server`).
    pub foreign: BTreeMap<&'static str, u64>,
    /// Virtual servers, routes and tables that failed and wait for their retry.
    pub waiting: u64,
    /// Warnings about the input by code.
    pub warnings: BTreeMap<String, u64>,
    /// Wanted and programmed share of each level of each Service port with a policy.
    pub shares: Vec<TierShare>,
    /// When the last pass ended, by family, seconds since 1970.
    pub last_pass: BTreeMap<&'static str, f64>,
    /// When the last change was queued, by family, seconds since 1970.
    pub last_queued: BTreeMap<&'static str, f64>,
    /// Service changes seen that no pass has taken up.
    pub pending_services: u64,
    /// `EndpointSlice` changes seen that no pass has taken up.
    pub pending_slices: u64,
    /// Services whose internal traffic policy is Local and that have endpoints, but none on this node, by family.
    pub without_local_endpoints: BTreeMap<&'static str, u64>,
    /// Age of the oldest change that is not in the kernel, seconds; 0 if none.
    pub oldest_pending_seconds: f64,
    /// Objects read by kind.
    pub objects: BTreeMap<String, u64>,
    /// Whether the first full read of the input is done.
    pub input_ready: bool,
    /// How the start went; none before the first pass is done.
    pub start: Option<Start>,
    /// The API server; none if the cluster is read from files.
    pub server: Option<Server>,
}

/// What was asked of the API server, and what came of it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Server {
    /// Its address.
    pub address: String,
    /// Requests by verb, method, resource and code (`<error>` when no answer came).
    pub requests: BTreeMap<(&'static str, &'static str, String, String), u64>,
    /// Bytes received by resource.
    pub bytes: BTreeMap<String, u64>,
    /// When it last said anything about each collection, seconds since 1970.
    pub heard: BTreeMap<&'static str, f64>,
    /// Whether changes of each collection are not heard now.
    pub behind: BTreeMap<&'static str, bool>,
    /// How many objects of each collection stay although its last list lacks them.
    pub doubted: BTreeMap<&'static str, usize>,
    /// What other Nodes are known from: `nodes` or `map`.
    pub node_source: &'static str,
}

/// How the start went, in seconds.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Start {
    /// From the start of the process to the end of the first full read.
    pub read: f64,
    /// Reading what the kernel held.
    pub dump: f64,
    /// Resolving every Service and comparing with the kernel.
    pub compute: f64,
    /// Sending commands to IPVS until the last acknowledgement.
    pub apply: f64,
    /// From the end of the first full read to the end of the first pass.
    pub pass: f64,
    /// Commands sent to IPVS.
    pub writes: u64,
}

/// Share of one level of one Service port, 0 to 1.
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
    /// What the policy asks for.
    pub wanted: f64,
    /// What the weights give.
    pub programmed: f64,
}
