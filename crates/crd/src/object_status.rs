//! The status of policies and drains and the spec of maps and locators, as the controller writes them.
//!
//! `status.rs`, `map.rs`, `pod_map.rs` and `pod_locator.rs` describe the same objects for the API server. A test compares the two.

use std::collections::BTreeMap;
use std::net::IpAddr;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use serde::{Deserialize, Serialize};

/// The status of a `TopologyPolicy` or `ClusterTopologyPolicy`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PolicyStatus {
    /// The types `Accepted`, `Programmed`, `Degraded` and `LevelsKnown`.
    pub conditions: Vec<Condition>,
    pub matched_services: u64,
    /// The nodes that use the policy, of all nodes: `57/60`.
    pub programmed_nodes: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_transition: Option<LastTransition>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LastTransition {
    /// Namespace and name of the Service: `shop/cart`.
    pub service: String,
    /// The requested mode; empty if unknown.
    pub from: String,
    /// The mode that decides instead.
    pub to: String,
    /// The reason, in one word.
    pub reason: String,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DrainStatus {
    /// `Accepted`.
    pub conditions: Vec<Condition>,
    pub phase: DrainPhase,
    /// The number of endpoints that take no new connections because of it.
    pub endpoints_drained: u64,
    /// The number of Services that it skips.
    pub services_skipped: u64,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum DrainPhase {
    /// The share of the drained domains decreases.
    Ramping,
    /// The drained domains take no new connections.
    Active,
    /// The drain has ended.
    Expired,
    /// The drain is not valid, or has no phase yet.
    #[default]
    Refused,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MapSpec {
    pub shard: usize,
    /// The labels of Nodes whose values the map contains.
    pub keys: Vec<String>,
    pub nodes: BTreeMap<String, MapNode>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MapNode {
    /// The values of the labels, in the order of the keys; empty = the Node has no such label, or it is in
    /// `empty_labels`.
    pub v: Vec<String>,
    /// The labels of the keys that the Node has with an empty value.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub empty_labels: Vec<String>,
    pub ips: Vec<String>,
    /// `spec.podCIDRs`. Absent if there are none, as in a map of a controller that does not write them.
    #[serde(rename = "podCIDRs", skip_serializing_if = "Vec::is_empty")]
    pub pod_cidrs: Vec<String>,
    /// Allocatable CPU, in thousandths.
    pub cpu_milli: u64,
    pub ready: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodMapSpec {
    /// `namespace/name` of the Pod at each address.
    pub pods: BTreeMap<IpAddr, String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodLocatorSpec {
    pub node_name: String,
    pub addresses: Vec<IpAddr>,
    pub node_labels: BTreeMap<String, String>,
}
