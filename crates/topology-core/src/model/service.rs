//! Describes a Service: its frontends, ports, traffic policies and what it asks of topology.

use std::sync::Arc;

use super::{Frontend, Labels, ObjectName, ServicePort};
use crate::hints::HintMode;
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
    /// The addresses under which clients reach it, in the order in which they are served.
    pub frontends: Vec<Frontend>,
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
    /// What its `topologyKeys` ask for by themselves, whether its annotations leave that in force or not.
    pub topology_keys: Option<Arc<Policy>>,
    /// What is wrong with its annotations of ours or its `topologyKeys`.
    pub faults: Faults,
    /// The hints that it asks those who write its `EndpointSlices` for.
    pub hint_mode: HintMode,
    /// What it asks for and this version does not program.
    pub unprogrammed: Vec<Unprogrammed>,
}

/// What is wrong with the annotations or `topologyKeys` of a Service.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Faults {
    /// Nothing.
    #[default]
    None,
    /// Some are not valid and do not count; the others do.
    Some,
    /// The levels of a hard policy, or the name of the policy, cannot be read, and no earlier version says them:
    /// `policy` is a boundary that holds no endpoint.
    Boundary,
    /// The levels of a hard policy, or the name of the policy, cannot be read: `policy` and `named_policy` are those of
    /// the last good version.
    LastGood,
    /// The policy uses labels of Nodes that are not read yet: what the version before asked stays.
    Pending,
}

impl Service {
    /// A Service that asks for nothing: every ready endpoint gets the same share.
    pub fn new(name: ObjectName, frontends: Vec<Frontend>, ports: Vec<ServicePort>) -> Self {
        Self {
            name,
            labels: Labels::default(),
            created: None,
            frontends,
            ports,
            session_affinity: None,
            internal_traffic_policy: TrafficPolicy::default(),
            external_traffic_policy: TrafficPolicy::default(),
            externally_accessible: false,
            policy: None,
            named_policy: None,
            topology_keys: None,
            faults: Faults::default(),
            hint_mode: HintMode::Nothing,
            unprogrammed: Vec::new(),
        }
    }

    /// Puts what `last` asked in the place of a policy that waits for labels, or of a boundary that cannot be read; `last` is what was known of the Service. A
    /// version that asked for no levels and named no policy has nothing to put there: agents that saw it refuse, as those
    /// that start now.
    pub fn keep_last_good(&mut self, last: &Self) {
        if self.faults == Faults::Pending {
            self.faults = last.faults;
            self.policy.clone_from(&last.policy);
            self.named_policy.clone_from(&last.named_policy);
            return;
        }
        let has_levels = last.policy.as_ref().is_some_and(|policy| !policy.adds);
        let is_good =
            last.faults != Faults::Boundary && (has_levels || last.named_policy.is_some());
        if self.faults == Faults::Boundary && is_good {
            self.faults = Faults::LastGood;
            self.policy.clone_from(&last.policy);
            self.named_policy.clone_from(&last.named_policy);
        }
    }
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
