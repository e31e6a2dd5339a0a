//! The JSON contract of `status`: what the running agent serves, and how it stands.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::view::{NotProgrammedView, ServerView, WarningView};

/// `status -o json`: the head, and every page.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StatusView {
    /// How things stand.
    #[serde(flatten)]
    pub head: HeadView,
    /// What is served.
    #[serde(flatten)]
    pub services: ServicesView,
}

/// How things stand beside the Services.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HeadView {
    /// This node's name.
    pub node: String,
    /// The process.
    pub agent: AgentView,
    /// Where the cluster is read from, and what was read.
    pub input: InputView,
    /// How the kernel stands.
    pub kernel: KernelView,
    /// What others put into the kernel; never touched.
    pub foreign: Vec<ForeignView>,
    /// What is wrong with the input.
    pub warnings: Vec<WarningView>,
    /// What is wrong with this node.
    pub node_warnings: Vec<NodeWarningView>,
}

/// Something wrong with this node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeWarningView {
    /// One word of a closed list; see docs/messages.md.
    pub code: String,
    /// What is wrong, what follows from it, and what to do, on one line.
    pub text: String,
}

/// What is served for some Services.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ServicesView {
    /// By Service, port name and address.
    pub virtual_servers: Vec<ServerView>,
    /// Parts of Services that this version does not program.
    pub not_programmed: Vec<NotProgrammedView>,
    /// What resolving the Services showed to be wrong with them.
    pub findings: Vec<WarningView>,
}

/// One page of [`ServicesView`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PageView {
    /// The Services of this page.
    #[serde(flatten)]
    pub services: ServicesView,
    /// Ask for the Services after this name; absent on the last page.
    pub next: Option<String>,
}

/// The agent's process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentView {
    /// Its version.
    pub version: String,
    /// Its process id.
    pub pid: u32,
    /// Seconds since it started.
    pub uptime_seconds: u64,
}

/// Where the cluster is read from, and what was read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InputView {
    /// The file or folder, or the API server's address.
    pub source: String,
    /// Whether everything was read once; nothing is programmed before.
    pub ready: bool,
    /// Services in it.
    pub services: u64,
    /// Endpoints in it.
    pub endpoints: u64,
    /// Objects of kinds that are not used, by kind.
    pub skipped: BTreeMap<String, u64>,
    /// Seconds since the last change; absent before the first.
    pub last_change_seconds: Option<u64>,
    /// What is read from an API server, one by one; empty for files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub collections: Vec<CollectionView>,
}

/// One collection that is read from an API server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CollectionView {
    /// As `kubectl` takes it: `endpointslices.discovery.k8s.io`.
    pub name: String,
    /// `listing`, `following`, `stale`, `absent` or `unused`.
    pub state: String,
    /// Objects that are known.
    pub objects: u64,
    /// Seconds since changes are heard without a gap; absent while they are not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub synced_seconds: Option<u64>,
    /// Seconds since the server last said anything about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub heard_seconds: Option<u64>,
    /// What stands in the way.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
    /// Of the map that shall stand for the Nodes: why they are read themselves instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lack: Option<String>,
}

/// How the kernel stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct KernelView {
    /// The first pass is done, nothing waits and nothing failed.
    pub in_sync: bool,
    /// Virtual servers of ours.
    pub virtual_servers: u64,
    /// Real servers of ours that take connections.
    pub real_servers: u64,
    /// Real servers of ours that finish what they have.
    pub draining: u64,
    /// Virtual servers, routes and tables that failed and wait for their next try.
    pub waiting: u64,
    /// Seconds since the last pass; absent before the first.
    pub last_pass_seconds: Option<u64>,
    /// Seconds that the oldest change waits; absent if none does.
    pub oldest_pending_seconds: Option<u64>,
    /// Our routes, as `ip route` shows them.
    pub routes: Vec<String>,
}

/// Something of others in the kernel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ForeignView {
    /// `virtual-server`, `route` or `table`.
    pub kind: String,
    /// In the words of the tool that shows it.
    pub what: String,
}
