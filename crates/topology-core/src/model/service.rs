//! Services and their ports.

use std::net::IpAddr;
use std::num::NonZeroU16;
use std::sync::Arc;

use super::{Labels, ObjectName};
use crate::policy::Policy;

/// A Service with a `ClusterIP`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Service {
    /// `metadata.namespace` and `metadata.name`.
    pub name: ObjectName,
    /// `metadata.labels`, for the selectors of policies.
    pub labels: Labels,
    /// `metadata.creationTimestamp`, seconds since 1970; the older of two claimants of one frontend wins.
    pub created: Option<i64>,
    /// `spec.clusterIPs`, at most one of each family.
    pub cluster_ips: Vec<IpAddr>,
    /// `spec.ports`.
    pub ports: Vec<ServicePort>,
    /// `sessionAffinityConfig.clientIP.timeoutSeconds` where `sessionAffinity` is `ClientIP`.
    pub session_affinity: Option<u32>,
    /// `spec.internalTrafficPolicy`.
    pub internal_traffic_policy: TrafficPolicy,
    /// `spec.externalTrafficPolicy`.
    pub external_traffic_policy: TrafficPolicy,
    /// Whether a `NodePort`, load-balancer or external address leads to it (KP-TP-01).
    pub externally_accessible: bool,
    /// The policy that its annotations or `topologyKeys` ask for; Services that ask for the same may share it.
    pub policy: Option<Arc<Policy>>,
    /// The `TopologyPolicy` of its namespace that its annotation `policy` names instead.
    pub named_policy: Option<Arc<str>>,
    /// Whether its annotations of ours are not valid, so that none of them is used.
    pub annotations_invalid: bool,
    /// What it asks for and this version does not program.
    pub unprogrammed: Vec<Unprogrammed>,
}

/// One port of a Service.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ServicePort {
    /// `name`, empty if the Service has one unnamed port.
    pub name: Arc<str>,
    /// `protocol`.
    pub protocol: super::Protocol,
    /// `port`.
    pub port: NonZeroU16,
}

/// `Cluster` or `Local`, of `internalTrafficPolicy` and `externalTrafficPolicy`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum TrafficPolicy {
    /// Endpoints anywhere.
    #[default]
    Cluster,
    /// Endpoints on this node.
    Local,
}

/// A part of a Service that this version does not program.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Unprogrammed {
    /// The field, such as `spec.externalIPs`.
    pub field: Arc<str>,
    /// Why not, in words for its owner.
    pub reason: Arc<str>,
}
