//! The Kubernetes objects that this program uses, as values of `topology-core`.

// A new variant must be handled in each `match`, and not fall under `_`.
#![warn(clippy::wildcard_enum_match_arm)]

use std::fmt;
use std::sync::Arc;

use topology_core::model::{
    Drain, EndpointSlice, IpNetwork, Labels, Node, NodePods, ObjectName, Service, TopologyPolicy,
};

/// The kinds that this program reads. Objects of other kinds are skipped and counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// `v1` Node.
    Node,
    /// `v1` Service.
    Service,
    /// `discovery.k8s.io` `EndpointSlice` (`v1` and `v1beta1`).
    EndpointSlice,
    /// `networking.k8s.io` `ServiceCIDR` (`v1`, `v1beta1` and `v1alpha1`).
    ServiceCidr,
    /// `v1` Namespace.
    Namespace,
    /// `topology.ipvs-topo.io` `TopologyPolicy`.
    TopologyPolicy,
    /// `topology.ipvs-topo.io` `ClusterTopologyPolicy`.
    ClusterTopologyPolicy,
    /// `topology.ipvs-topo.io` `TopologyDrain`.
    TopologyDrain,
    /// `topology.ipvs-topo.io` `PodMap`.
    PodMap,
}

impl Kind {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Node => "Node",
            Self::Service => "Service",
            Self::EndpointSlice => "EndpointSlice",
            Self::ServiceCidr => "ServiceCIDR",
            Self::Namespace => "Namespace",
            Self::TopologyPolicy => "TopologyPolicy",
            Self::ClusterTopologyPolicy => "ClusterTopologyPolicy",
            Self::TopologyDrain => "TopologyDrain",
            Self::PodMap => "PodMap",
        }
    }

    pub(crate) fn is_namespaced(self) -> bool {
        matches!(
            self,
            Self::Service | Self::EndpointSlice | Self::TopologyPolicy
        )
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Identifies an object. The namespace is empty for cluster-scoped kinds.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectKey {
    pub kind: Kind,
    pub name: ObjectName,
}

impl ObjectKey {
    pub(crate) fn namespaced(kind: Kind, name: &ObjectName) -> Self {
        Self {
            kind,
            name: name.clone(),
        }
    }

    /// The key of a cluster-scoped object.
    pub fn global(kind: Kind, name: &Arc<str>) -> Self {
        Self {
            kind,
            name: ObjectName::new("", Arc::clone(name)),
        }
    }

    /// The key of a `TopologyPolicy` or `ClusterTopologyPolicy`.
    pub(crate) fn of_policy(policy: &TopologyPolicy) -> Self {
        let TopologyPolicy {
            namespace, name, ..
        } = policy;
        match namespace {
            Some(namespace) => Self {
                kind: Kind::TopologyPolicy,
                name: ObjectName::new(Arc::clone(namespace), Arc::clone(name)),
            },
            None => Self::global(Kind::ClusterTopologyPolicy, name),
        }
    }

    /// `shop/cart`, or `n1` for kinds without a namespace.
    pub(crate) fn short_name(&self) -> String {
        let name = &self.name;
        if name.namespace.is_empty() {
            name.name.to_string()
        } else {
            name.to_string()
        }
    }
}

/// `Service shop/cart`, `Node n1`.
impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind, self.short_name())
    }
}

/// The ranges of Service addresses in a `ServiceCIDR` object.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ServiceCidr {
    pub name: Arc<str>,
    /// At most one range for each address family.
    pub cidrs: Vec<IpNetwork>,
}

/// A Namespace, with the labels that a `ClusterTopologyPolicy` selects by.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Namespace {
    pub name: Arc<str>,
    pub labels: Labels,
}

/// A valid object.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Object {
    Node(Node),
    /// Has at least one cluster IP, unless all Services are read.
    Service(Service),
    /// Holds endpoints of one Service and one address family.
    EndpointSlice(EndpointSlice),
    ServiceCidr(ServiceCidr),
    Namespace(Namespace),
    Policy(Box<TopologyPolicy>),
    Drain(Drain),
    PodMap(NodePods),
}

impl Object {
    pub fn key(&self) -> ObjectKey {
        let (kind, name) = match self {
            Self::Node(node) => return ObjectKey::global(Kind::Node, &node.name),
            Self::Service(service) => (Kind::Service, &service.name),
            Self::EndpointSlice(slice) => (Kind::EndpointSlice, &slice.name),
            Self::ServiceCidr(cidr) => return ObjectKey::global(Kind::ServiceCidr, &cidr.name),
            Self::Namespace(namespace) => {
                return ObjectKey::global(Kind::Namespace, &namespace.name);
            }
            Self::Policy(policy) => return ObjectKey::of_policy(policy),
            Self::Drain(drain) => return ObjectKey::global(Kind::TopologyDrain, &drain.name),
            Self::PodMap(pods) => return ObjectKey::global(Kind::PodMap, &pods.node),
        };
        ObjectKey::namespaced(kind, name)
    }
}

/// Why this program does not use a valid object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Ignored {
    /// `clusterIP: None`, or the label `service.kubernetes.io/headless`: clients use the endpoints.
    Headless,
    /// `type: ExternalName`: a DNS alias.
    ExternalName,
    /// The label `service.kubernetes.io/service-proxy-name` assigns it to another proxy.
    OtherProxy,
    /// The Service has no cluster IP yet.
    NoClusterIp,
    /// The slice holds host names (`addressType: FQDN`), which no proxy resolves.
    Fqdn,
    /// The slice has no label `kubernetes.io/service-name`, so it belongs to no Service.
    NoService,
}

impl fmt::Display for Ignored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Headless => "headless",
            Self::ExternalName => "of type ExternalName",
            Self::OtherProxy => {
                "left to another proxy by its label service.kubernetes.io/service-proxy-name"
            }
            Self::NoClusterIp => "without a cluster IP",
            Self::Fqdn => "of addressType FQDN",
            Self::NoService => "without the label kubernetes.io/service-name",
        })
    }
}
