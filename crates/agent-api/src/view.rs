//! The JSON of `render`, `status`, `diff` and `explain`.
//!
//! Scripts depend on it: fields are added, never renamed or removed.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

/// `render -o json`: the virtual servers of one node.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeView {
    /// The node that the decisions are for.
    pub node: String,
    /// In order of Service, port name and address.
    pub virtual_servers: Vec<ServerView>,
    /// Parts of Services that are not programmed.
    pub not_programmed: Vec<NotProgrammedView>,
    /// Warnings about the input.
    pub warnings: Vec<WarningView>,
}

/// A virtual server and its decision.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ServerView {
    /// `namespace/name`.
    pub service: String,
    /// The name of the Service port; empty if it has none.
    pub port_name: String,
    /// The kind of the address: `ClusterIP`, `NodePort`, `ExternalIP` or `LoadBalancer`; of a firewall mark, that of the first of
    /// `frontends`. `DNS` for a headless Service.
    pub kind: String,
    /// `TCP`, `UDP` or `SCTP`; empty for DNS.
    pub protocol: String,
    /// The virtual address; absent for a firewall mark and for DNS.
    pub address: Option<IpAddr>,
    /// The virtual port; absent for a firewall mark and for DNS.
    pub port: Option<u16>,
    /// The firewall mark, for a virtual server without an address.
    pub fwmark: Option<u32>,
    /// The clients that it serves: `all`, or with `externalTrafficPolicy: Local` those `inside` the cluster (an
    /// address) or those `outside` (a firewall mark).
    #[serde(default)]
    pub clients: String,
    /// Where these clients connect, as `192.0.2.1:80`: the address, or all addresses of a firewall mark.
    #[serde(default)]
    pub frontends: Vec<String>,
    pub scheduler: String,
    /// Session affinity in seconds; 0 for none.
    pub persistence_seconds: u32,
    pub policy: PolicyView,
    /// Exceptional events in the stages, in order.
    pub notes: Vec<NoteView>,
    /// Why clients are refused, as text; absent if a real server gets connections.
    pub refusal: Option<String>,
    /// The same as a code.
    #[serde(default)]
    pub refusal_code: Option<String>,
    /// Chosen endpoints, by level and address.
    pub real_servers: Vec<RealServerView>,
    /// Excluded endpoints, with reasons.
    pub excluded: Vec<ExcludedView>,
    /// The kernel's state; only from a running agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<ServerKernelView>,
}

/// An exceptional event in a stage.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NoteView {
    /// A code from the list in docs/messages.md.
    pub code: String,
    /// `S0` to `S11`.
    pub stage: String,
    /// The same as text.
    pub words: String,
}

/// How the real servers of a virtual server were chosen.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PolicyView {
    /// The source of the policy: `trafficPolicyLocal`, `clusterOverride`, `annotation`, `topologyKeys`,
    /// `topologyPolicy`, `clusterDefault`, `hints`, `uniform`.
    pub source: String,
    /// `hard`, `prefer`, `weighted`, `balanced`, `none`.
    pub mode: String,
    /// The same as text.
    pub words: String,
    /// Nearest first; empty without levels.
    pub levels: Vec<LevelView>,
}

/// One level of a policy.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LevelView {
    /// The notation of annotations: `node`, `zone`, `region`, a label key, or `*`. `label zone` is a label with the key
    /// `zone`, which only `topologyKeys` can name.
    pub level: String,
    /// Endpoints in it that get connections.
    pub usable: u32,
    /// Endpoints in it that a drain keeps from new connections.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub draining: u32,
    /// All endpoints in it.
    pub total: u32,
    /// Share of new connections in the policy, 0 to 1.
    pub desired: f64,
    /// The share after empty levels have passed theirs on.
    pub share: f64,
    /// The share that the weights result in, 0 to 1.
    pub programmed: f64,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
const fn is_zero(count: &u32) -> bool {
    *count == 0
}

/// A chosen endpoint.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RealServerView {
    pub address: IpAddr,
    pub port: u16,
    /// The Node, if the slice names one.
    pub node: Option<String>,
    /// The zone, if known.
    pub zone: Option<String>,
    /// Its level; absent without levels.
    pub level: Option<String>,
    /// The weight in the kernel; with 0 it gets no new connections.
    pub weight: u32,
    /// Share of new connections, 0 to 1.
    pub share: f64,
    /// `active`; `draining` for a real server with a deadline; `waiting` for one that is no longer chosen and is
    /// deleted when its connections end; `missing` from the kernel; `unexpected`, because only the kernel has it;
    /// `weighs N` if the kernel has another weight.
    pub state: String,
    /// Why it was chosen, or why it drains, as text.
    pub reason: String,
    /// The same as a code; empty for a real server without an endpoint.
    #[serde(default)]
    pub code: String,
    /// Only from a running agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connections: Option<ConnectionsView>,
    /// Seconds until a draining real server is deleted even with connections left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drain_seconds_left: Option<u64>,
}

/// An excluded endpoint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExcludedView {
    pub address: IpAddr,
    pub port: u16,
    /// The Node, if the slice names one.
    pub node: Option<String>,
    /// The zone, if known.
    pub zone: Option<String>,
    /// A code from the list in docs/messages.md, such as `NotReady` or `OtherZone`.
    pub reason: String,
    /// The same as text.
    pub words: String,
}

/// A part of a Service that is not in the kernel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NotProgrammedView {
    /// `namespace/name`.
    pub service: String,
    pub field: String,
    pub reason: String,
}

/// A warning about the input.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WarningView {
    /// A code from the list in docs/messages.md.
    pub code: String,
    /// The file; absent if the warning is about several objects.
    pub file: Option<String>,
    /// The line in the file, from 1.
    pub line: Option<u64>,
    /// `Kind namespace/name`.
    pub object: Option<String>,
    /// Path of the field.
    pub field: Option<String>,
    /// The problem.
    pub message: String,
    /// The remedy.
    pub remedy: Option<String>,
    /// The whole warning on one line.
    pub text: String,
}

/// Connections of a real server, from the kernel.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ConnectionsView {
    /// Established connections.
    pub active: u32,
    /// Closing connections, and those kept for late packets.
    pub inactive: u32,
    /// Connections kept by session affinity.
    pub persistent: u32,
    /// Absent while the kernel's counters stand still (`net.ipv4.vs.run_estimation` is 0).
    #[serde(default, flatten)]
    pub traffic: Option<TrafficView>,
}

/// The kernel's counters of a real server, since it was added.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TrafficView {
    /// Connections.
    pub total: u64,
    /// New connections per second, by the kernel's estimator.
    pub per_second: u64,
    /// Bytes from clients.
    pub bytes_in: u64,
    /// Bytes to clients.
    pub bytes_out: u64,
    /// Bytes from clients per second.
    pub bytes_in_per_second: u64,
    /// Bytes to clients per second.
    pub bytes_out_per_second: u64,
}

/// The kernel's state of a virtual server, without its real servers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ServerKernelView {
    /// `programmed`, `failed`, `refused` or `foreign`.
    pub state: String,
    /// The reason, unless it is programmed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Seconds until the next attempt, if it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_in_seconds: Option<u64>,
}

/// `diff -o json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DiffView {
    /// Whether the kernel is in the desired state.
    pub equal: bool,
    /// The steps, in order.
    pub steps: Vec<StepView>,
}

/// A step of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StepView {
    pub change: StepChange,
    /// The equivalent command line.
    pub command: String,
}

/// What a step does to a virtual or real server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StepChange {
    Add,
    Edit,
    Delete,
    /// It is about anything else.
    Other,
}

/// `explain -o json`: one element for each virtual server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExplainView {
    #[serde(flatten)]
    pub server: ServerView,
    /// The source that decided.
    #[serde(default)]
    pub decided_by: DeciderView,
    /// Sources that did not decide, with reasons; the strongest first.
    #[serde(default)]
    pub lost: Vec<LostView>,
    /// What each stage did.
    pub stages: Vec<StageView>,
    /// The meaning of the weights under the scheduler.
    #[serde(default)]
    pub scheduler_note: String,
    /// The Node that the decision is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<PlaceView>,
    /// Single changes that would alter the decision; each was tried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub what_if: Option<Vec<WhatIfView>>,
    /// Warnings about the objects that the decision depends on.
    #[serde(default)]
    pub warnings: Vec<WarningView>,
}

/// The source that decided.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeciderView {
    /// The same values as `policy.source`.
    pub source: String,
    /// The policy object, as `TopologyPolicy shop/near`; absent for other sources.
    pub policy: Option<String>,
    /// The same as text.
    pub words: String,
}

/// A source that did not decide.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LostView {
    /// The same values as `policy.source`.
    pub source: String,
    /// The policy object; absent for other sources.
    pub policy: Option<String>,
    /// Source and object as text.
    pub words: String,
    /// Why it did not decide, as text.
    pub why: String,
    /// The same as a code.
    #[serde(default)]
    pub code: String,
}

/// The Node that a decision is for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlaceView {
    pub name: String,
    /// Whether the input has this Node.
    pub known: bool,
    pub labels: std::collections::BTreeMap<String, String>,
    /// Levels of the policy whose labels the Node does not have.
    pub missing: Vec<String>,
}

/// A single change and its effect.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WhatIfView {
    /// The change, as text.
    pub change: String,
    /// The effect, as text.
    pub effect: String,
}

/// A stage of a decision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StageView {
    /// `S0` to `S11`.
    pub stage: String,
    /// The name of the stage.
    pub name: String,
    /// Endpoints that could get traffic before it.
    #[serde(default)]
    pub endpoints_before: u32,
    /// Endpoints that could get traffic after it.
    #[serde(default)]
    pub endpoints_after: u32,
    /// The calculation, as text; empty if the stage had nothing to do.
    pub lines: Vec<String>,
}
