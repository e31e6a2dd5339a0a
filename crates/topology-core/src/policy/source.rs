//! Where a policy was written.

use super::in_full;

/// What decides the endpoints of a Service port: the first source that applies, never a mixture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PolicySource {
    /// `internalTrafficPolicy: Local`.
    TrafficPolicyLocal,
    /// A `ClusterTopologyPolicy` with `enforcement: Override`.
    ClusterOverride,
    /// Annotations on the Service.
    Annotation,
    /// `spec.topologyKeys`.
    TopologyKeys,
    /// A `TopologyPolicy` in the Service's namespace.
    NamespacePolicy,
    /// A `ClusterTopologyPolicy` with `enforcement: Default`.
    ClusterDefault,
    /// `hints` of its `EndpointSlices`, as kube-proxy 1.35 reads them.
    Hints,
    /// Nothing: every ready endpoint alike.
    Uniform,
}

impl PolicySource {
    /// Whether it is a policy of ours: of the owner, a namespace or the cluster. Every other source has one level.
    pub const fn is_policy(self) -> bool {
        match self {
            Self::ClusterOverride
            | Self::Annotation
            | Self::TopologyKeys
            | Self::NamespacePolicy
            | Self::ClusterDefault => true,
            Self::TrafficPolicyLocal | Self::Hints | Self::Uniform => false,
        }
    }

    /// What a level is called where it is written: `topologyKeys` knows no short names.
    pub fn in_words(self, level: &str) -> &str {
        if self == Self::TopologyKeys {
            in_full(level)
        } else {
            level
        }
    }

    /// The word for it in output.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::TrafficPolicyLocal => "trafficPolicyLocal",
            Self::ClusterOverride => "clusterOverride",
            Self::Annotation => "annotation",
            Self::TopologyKeys => "topologyKeys",
            Self::NamespacePolicy => "topologyPolicy",
            Self::ClusterDefault => "clusterDefault",
            Self::Hints => "hints",
            Self::Uniform => "uniform",
        }
    }
}
