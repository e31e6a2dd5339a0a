//! The JSON contract of `render`, `status`, `diff` and `explain`, as structs.
//!
//! Fields are added, never renamed or removed: scripts read this.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

/// `render -o json`: what one node programs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeView {
    /// The node that the cluster is seen from.
    pub node: String,
    /// By Service, port name and address.
    pub virtual_servers: Vec<ServerView>,
    /// Parts of Services that this version does not program.
    pub not_programmed: Vec<NotProgrammedView>,
    /// What is wrong with the input.
    pub warnings: Vec<WarningView>,
}

/// One virtual server and why it holds what it holds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ServerView {
    /// `namespace/name`.
    pub service: String,
    /// The Service port's name; empty if it has none.
    pub port_name: String,
    /// What kind of address this is: `ClusterIP`.
    pub kind: String,
    /// `TCP`, `UDP` or `SCTP`.
    pub protocol: String,
    /// The virtual address; absent for a firewall mark.
    pub address: Option<IpAddr>,
    /// The virtual port; absent for a firewall mark.
    pub port: Option<u16>,
    /// The firewall mark, if this virtual server has one instead of an address.
    pub fwmark: Option<u32>,
    /// The kernel scheduler.
    pub scheduler: String,
    /// Session affinity; 0 is none.
    pub persistence_seconds: u32,
    /// How the real servers were chosen.
    pub policy: PolicyView,
    /// What was done out of the ordinary, in the order of the stages.
    pub notes: Vec<NoteView>,
    /// Why nobody takes connections, for people; absent if somebody does.
    pub refusal: Option<String>,
    /// The same as one word of a closed list.
    #[serde(default)]
    pub refusal_code: Option<String>,
    /// Chosen endpoints, in the order of their level, then address.
    pub real_servers: Vec<RealServerView>,
    /// Endpoints that are out, and why.
    pub excluded: Vec<ExcludedView>,
    /// What is in the kernel beside this; only from a running agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<ServerKernelView>,
}

/// Something that a stage did out of the ordinary.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NoteView {
    /// One word of a closed list; see docs/messages.md.
    pub code: String,
    /// `S0` to `S11`.
    pub stage: String,
    /// The same for people.
    pub words: String,
}

/// How the real servers of one virtual server were chosen.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PolicyView {
    /// Who said so: `trafficPolicyLocal`, `clusterOverride`, `annotation`, `topologyKeys`, `topologyPolicy`,
    /// `clusterDefault`, `hints`, `uniform`.
    pub source: String,
    /// `hard`, `prefer`, `weighted`, `balanced`, `none`.
    pub mode: String,
    /// The same for people.
    pub words: String,
    /// Nearest first; empty if nobody asked for levels.
    pub levels: Vec<LevelView>,
}

/// One level of a policy.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LevelView {
    /// As annotations write it: `node`, `zone`, `region`, a label key, or `*`; `label zone` is the label that is called so,
    /// which only `topologyKeys` can name.
    pub level: String,
    /// Endpoints in it that take connections.
    pub usable: u32,
    /// Endpoints in it that a drain keeps from new connections.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub draining: u32,
    /// Endpoints in it, whatever their condition.
    pub total: u32,
    /// Share of new connections that the policy asks for, 0 to 1.
    pub wanted: f64,
    /// The same once empty levels have given theirs away.
    pub share: f64,
    /// Share that the weights give, 0 to 1.
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
    /// The endpoint's address.
    pub address: IpAddr,
    /// The endpoint's port.
    pub port: u16,
    /// Its node, if the slice says so.
    pub node: Option<String>,
    /// Its zone, if known.
    pub zone: Option<String>,
    /// The level that took it in; absent without levels.
    pub level: Option<String>,
    /// The weight in the kernel; 0 takes no new connections.
    pub weight: u32,
    /// Share of new connections, 0 to 1.
    pub share: f64,
    /// `active`; `draining` for one that goes at a deadline; `waiting` for one that is no longer chosen and goes when its
    /// connections end.
    pub state: String,
    /// Why it was chosen, or why it drains, for people.
    pub reason: String,
    /// The same as one word of a closed list; empty for one that nobody asked for.
    #[serde(default)]
    pub code: String,
    /// Only from a running agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connections: Option<ConnectionsView>,
    /// When a draining real server goes even with connections left: seconds from now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drain_seconds_left: Option<u64>,
}

/// An endpoint that is out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExcludedView {
    /// The endpoint's address.
    pub address: IpAddr,
    /// The endpoint's port.
    pub port: u16,
    /// Its node, if the slice says so.
    pub node: Option<String>,
    /// Its zone, if known.
    pub zone: Option<String>,
    /// One word of a closed list: `NotReady`, `OtherZone` and so on; see docs/messages.md.
    pub reason: String,
    /// The same for people.
    pub words: String,
}

/// Part of a Service that is not in the kernel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NotProgrammedView {
    /// `namespace/name`.
    pub service: String,
    /// The field that asks for it.
    pub field: String,
    /// Why it is not programmed.
    pub reason: String,
}

/// Something wrong with the input.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WarningView {
    /// One word of a closed list.
    pub code: String,
    /// Where it was read; absent if it concerns several objects.
    pub file: Option<String>,
    /// Line in the file, from 1.
    pub line: Option<u64>,
    /// `Kind namespace/name`.
    pub object: Option<String>,
    /// Path of the field.
    pub field: Option<String>,
    /// What is wrong.
    pub message: String,
    /// What would be right.
    pub remedy: Option<String>,
    /// All of it on one line.
    pub text: String,
}

/// Connections of one real server, from the kernel.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ConnectionsView {
    /// Established.
    pub active: u32,
    /// Closing, or held open for late packets.
    pub inactive: u32,
    /// Held by session affinity.
    pub persistent: u32,
    /// Since the real server was added.
    pub total: u64,
    /// New connections each second, by the kernel's estimator.
    pub per_second: u64,
    /// Bytes from clients since the real server was added.
    pub bytes_in: u64,
    /// Bytes to clients since the real server was added.
    pub bytes_out: u64,
    /// Bytes from clients each second.
    pub bytes_in_per_second: u64,
    /// Bytes to clients each second.
    pub bytes_out_per_second: u64,
}

/// What the kernel holds of a virtual server, beside its real servers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ServerKernelView {
    /// `programmed`, `pending` or `failed`.
    pub state: String,
    /// Why it failed, if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Seconds until the next try, if it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_in_seconds: Option<u64>,
}

/// `diff -o json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DiffView {
    /// Whether the kernel is as it should be.
    pub equal: bool,
    /// What would be done, in order.
    pub steps: Vec<StepView>,
}

/// One step of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StepView {
    /// `add`, `edit`, `delete`, or `other` for what is not a virtual or real server.
    pub change: String,
    /// The command that an operator would type.
    pub command: String,
}

/// `explain -o json`, one element for each virtual server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExplainView {
    /// The virtual server.
    #[serde(flatten)]
    pub server: ServerView,
    /// Who decided.
    #[serde(default)]
    pub decided_by: DeciderView,
    /// Who else could have, and why not; the next best first.
    #[serde(default)]
    pub lost: Vec<LostView>,
    /// How it came about.
    pub stages: Vec<StageView>,
    /// What the weights mean under the scheduler.
    #[serde(default)]
    pub scheduler_note: String,
    /// Where it is seen from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<PlaceView>,
    /// Single changes that would alter the outcome, each tried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub what_if: Option<Vec<WhatIfView>>,
    /// What is wrong with the objects that this was made of.
    #[serde(default)]
    pub warnings: Vec<WarningView>,
}

/// Who decided.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeciderView {
    /// As `policy.source`.
    pub source: String,
    /// The policy object, as `TopologyPolicy shop/near`; absent for every other source.
    pub policy: Option<String>,
    /// The same for people.
    pub words: String,
}

/// Who could have decided.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LostView {
    /// As `policy.source`.
    pub source: String,
    /// The policy object; absent for every other source.
    pub policy: Option<String>,
    /// Both for people.
    pub words: String,
    /// Why it did not, for people.
    pub why: String,
    /// The same as one word of a closed list.
    #[serde(default)]
    pub code: String,
}

/// The Node that a Service is seen from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlaceView {
    /// Its name.
    pub name: String,
    /// Whether the input has it.
    pub known: bool,
    /// Its labels.
    pub labels: std::collections::BTreeMap<String, String>,
    /// Levels that the policy asks for and whose labels it has not.
    pub missing: Vec<String>,
}

/// A single change and what it would do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WhatIfView {
    /// The change, for people.
    pub change: String,
    /// What would be different, for people.
    pub effect: String,
}

/// One stage of a decision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StageView {
    /// `S0` to `S11`.
    pub stage: String,
    /// What it is about.
    pub name: String,
    /// Endpoints that could take traffic before it.
    #[serde(default)]
    pub came_in: u32,
    /// Endpoints that could take traffic after it.
    #[serde(default)]
    pub went_out: u32,
    /// The arithmetic, for people; empty if it had nothing to do.
    pub lines: Vec<String>,
}
