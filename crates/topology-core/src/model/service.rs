//! Services: frontends, ports, traffic policies and topology settings.

use std::net::IpAddr;
use std::num::NonZeroU16;
use std::sync::Arc;

use super::{Frontend, FrontendKind, IpNetwork, Labels, ObjectName, ServicePort};
use crate::hints::HintMode;
use crate::policy::Policy;

/// A Service. One without frontends has no cluster IP: clients get the addresses of its endpoints, or another name, from
/// DNS. No virtual server is for it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Service {
    /// `metadata.namespace` and `metadata.name`.
    pub name: ObjectName,
    /// `metadata.labels`, for the selectors of policies.
    pub labels: Labels,
    /// `metadata.creationTimestamp`, seconds since 1970. If two Services claim the same frontend, the older one gets
    /// it.
    pub created: Option<i64>,
    /// The addresses where clients reach the Service, in order.
    pub frontends: Vec<Frontend>,
    /// `spec.ports`.
    pub ports: Vec<ServicePort>,
    /// `sessionAffinityConfig.clientIP.timeoutSeconds` where `sessionAffinity` is `ClientIP`.
    pub session_affinity: Option<u32>,
    /// `spec.internalTrafficPolicy`.
    pub internal_traffic_policy: TrafficPolicy,
    /// `spec.externalTrafficPolicy`.
    pub external_traffic_policy: TrafficPolicy,
    /// The clients that may use load-balancer addresses: `spec.loadBalancerSourceRanges`; `None` for all clients.
    pub source_ranges: Option<Vec<IpNetwork>>,
    /// `spec.healthCheckNodePort`, if load balancers ask there which nodes have endpoints: the type is LoadBalancer and
    /// `externalTrafficPolicy` is Local.
    pub health_check_node_port: Option<NonZeroU16>,
    /// The policy in its annotations or `topologyKeys`. Services with equal policies may share it.
    pub policy: Option<Arc<Policy>>,
    /// The `TopologyPolicy` in its namespace that its annotation `policy` names instead.
    pub named_policy: Option<Arc<str>>,
    /// The policy of its `topologyKeys` alone, even if annotations override it.
    pub topology_keys: Option<Arc<Policy>>,
    /// The state of its annotations and `topologyKeys`.
    pub faults: Faults,
    /// The hints that it requests from the controller that writes its EndpointSlices.
    pub hint_mode: HintMode,
    /// `spec.externalName`, if the type is `ExternalName`: DNS answers with this name.
    pub external_name: Option<Arc<str>>,
    /// `spec.publishNotReadyAddresses`: DNS answers with endpoints that are not ready, too.
    pub publish_not_ready_addresses: bool,
    /// Parts of the Service that are not programmed.
    pub unprogrammed: Vec<Unprogrammed>,
}

/// The state of the annotations or `topologyKeys` of a Service.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Faults {
    /// All are valid.
    #[default]
    None,
    /// Some are not valid and do not count; the others do.
    Some,
    /// The levels of a hard policy, or the name of the policy, cannot be parsed, and no earlier version is known.
    /// `policy` then is a boundary that contains no endpoint.
    Boundary,
    /// The levels of a hard policy, or the name of the policy, cannot be parsed. `policy` and `named_policy` are those
    /// of the last valid version.
    LastGood,
    /// The policy uses Node labels that are not loaded yet. The previous version's policy stays in force.
    Pending,
}

impl Service {
    /// A Service without topology settings: every ready endpoint gets the same share.
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
            source_ranges: None,
            health_check_node_port: None,
            policy: None,
            named_policy: None,
            topology_keys: None,
            faults: Faults::default(),
            hint_mode: HintMode::Nothing,
            external_name: None,
            publish_not_ready_addresses: false,
            unprogrammed: Vec::new(),
        }
    }

    /// Its cluster IPs.
    pub fn cluster_ips(&self) -> impl Iterator<Item = IpAddr> {
        let frontends = self.frontends.iter();
        let own = frontends.filter(|frontend| frontend.kind == FrontendKind::ClusterIp);
        own.map(|frontend| frontend.address)
    }

    /// Whether clients get the addresses of its endpoints from DNS.
    pub fn is_headless(&self) -> bool {
        self.frontends.is_empty() && self.external_name.is_none()
    }

    /// Whether a frontend serves clients outside of the cluster (KP-TP-01).
    pub fn is_externally_accessible(&self) -> bool {
        let mut frontends = self.frontends.iter();
        frontends.any(|frontend| frontend.kind.is_external())
    }

    /// Whether clients outside of the cluster get other endpoints than clients inside it.
    pub fn splits_clients(&self) -> bool {
        self.external_traffic_policy == TrafficPolicy::Local && self.is_externally_accessible()
    }

    /// Replaces a policy that waits for labels, or that cannot be parsed, by that of `last`, the previous version of
    /// the Service. If that version had no levels and named no policy, clients are refused, as by an agent that starts
    /// now.
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

/// `internalTrafficPolicy` or `externalTrafficPolicy`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum TrafficPolicy {
    /// Endpoints on any node.
    #[default]
    Cluster,
    /// Endpoints on this node only.
    Local,
}

/// A part of a Service that is not programmed.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Unprogrammed {
    /// The field, such as `spec.externalIPs`.
    pub field: Arc<str>,
    /// The reason, for the Service's owner.
    pub reason: Arc<str>,
}
