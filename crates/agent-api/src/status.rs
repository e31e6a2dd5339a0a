//! The JSON of `status`: what the agent programs, and its own state.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::view::{NotProgrammedView, ServerView, WarningView};

/// `status -o json`: the head and all pages.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StatusView {
    #[serde(flatten)]
    pub head: HeadView,
    #[serde(flatten)]
    pub services: ServicesView,
}

/// The agent's state, without the Services.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HeadView {
    pub node: String,
    pub agent: AgentView,
    /// The source of the cluster state, and how much was read.
    pub input: InputView,
    pub kernel: KernelView,
    /// Objects of other programs in the kernel; the agent never changes them.
    pub foreign: Vec<ForeignView>,
    /// Warnings about the input.
    pub warnings: Vec<WarningView>,
    /// Warnings about this node.
    pub node_warnings: Vec<NodeWarningView>,
}

/// A warning about this node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeWarningView {
    /// A code from the list in docs/messages.md.
    pub code: String,
    /// The problem, its consequence and the remedy, on one line.
    pub text: String,
}

/// The virtual servers of some Services.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ServicesView {
    /// In order of Service, port name and address.
    pub virtual_servers: Vec<ServerView>,
    /// Parts of Services that are not programmed.
    pub not_programmed: Vec<NotProgrammedView>,
    /// Problems found while resolving the Services.
    pub findings: Vec<WarningView>,
}

/// One page of [`ServicesView`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PageView {
    #[serde(flatten)]
    pub services: ServicesView,
    /// The next page has the Services after this name; absent on the last page.
    pub next: Option<String>,
}

/// The agent process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentView {
    pub version: String,
    pub pid: u32,
    pub uptime_seconds: u64,
}

/// The source of the cluster state, and how much was read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InputView {
    /// A file, a folder, or the API server's address.
    pub source: String,
    /// Whether everything was read once; nothing is programmed before.
    pub ready: bool,
    pub services: u64,
    pub endpoints: u64,
    /// Objects of kinds that the agent does not use, by kind.
    pub skipped: BTreeMap<String, u64>,
    /// Seconds since the last change; absent before the first.
    pub last_change_seconds: Option<u64>,
    /// The resources that are read from an API server; empty for files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub collections: Vec<CollectionView>,
}

/// A resource that is read from an API server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CollectionView {
    /// The name in kubectl's notation: `endpointslices.discovery.k8s.io`.
    pub name: String,
    /// `listing`, `following`, `stale`, `absent` or `unused`.
    pub state: String,
    /// Objects in the agent's copy.
    pub objects: u64,
    /// Seconds since the watch has been complete; absent while it is not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub synced_seconds: Option<u64>,
    /// Seconds since the server last sent anything for this resource.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub heard_seconds: Option<u64>,
    /// The error, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// For the map that replaces the Nodes: why the agent reads the Nodes instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub map_gap: Option<String>,
}

/// The state of the kernel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct KernelView {
    /// True if the first pass is done and no change is pending or failed.
    pub in_sync: bool,
    /// The agent's virtual servers.
    pub virtual_servers: u64,
    /// The agent's real servers that get new connections.
    pub real_servers: u64,
    /// The agent's real servers that only finish their connections.
    pub draining: u64,
    /// Virtual servers, routes and tables that failed and wait to be retried.
    pub waiting: u64,
    /// Seconds since the last pass; absent before the first.
    pub last_pass_seconds: Option<u64>,
    /// Seconds that the oldest change has been pending; absent if there is none.
    pub oldest_pending_seconds: Option<u64>,
    /// The agent's routes, in the format of `ip route`.
    pub routes: Vec<String>,
    /// How long connections without packets are known; absent until the agent has read it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeouts: Option<TimeoutsView>,
}

/// The timeouts of connections without packets.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TimeoutsView {
    /// Established TCP connections.
    pub tcp: TimeoutView,
    /// TCP connections after a FIN.
    pub tcp_fin: TimeoutView,
    pub udp: TimeoutView,
}

/// A timeout of IPVS and of connection tracking, in seconds; `null` if unknown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TimeoutView {
    /// The smaller of the two: a connection ends when one of them forgets it.
    pub effective_seconds: Option<u64>,
    pub ipvs_seconds: Option<u64>,
    pub conntrack_seconds: Option<u64>,
}

impl TimeoutView {
    /// The timeout of a connection that IPVS and connection tracking know for so many seconds (KP-WK-13).
    pub fn of(ipvs_seconds: Option<u64>, conntrack_seconds: Option<u64>) -> Self {
        Self {
            effective_seconds: [ipvs_seconds, conntrack_seconds]
                .into_iter()
                .flatten()
                .min(),
            ipvs_seconds,
            conntrack_seconds,
        }
    }
}

/// An object of another program in the kernel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ForeignView {
    /// `virtual-server`, `route` or `table`.
    pub kind: String,
    /// In the notation of the tool that lists it.
    pub what: String,
}
