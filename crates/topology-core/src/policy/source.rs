//! The sources of policies.

use super::label_of_alias;

/// The source that decides a Service port: the first one that applies. Sources are never combined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PolicySource {
    /// `internalTrafficPolicy: Local`, for clients of a cluster IP.
    InternalTrafficPolicyLocal,
    /// `externalTrafficPolicy: Local`, for outside clients of other addresses.
    ExternalTrafficPolicyLocal,
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
    /// No policy: every ready endpoint gets the same share.
    Uniform,
}

impl PolicySource {
    /// Whether the source is one of our policies, by owner, namespace or cluster. Every other
    /// source has one level.
    pub const fn is_policy(self) -> bool {
        match self {
            Self::ClusterOverride
            | Self::Annotation
            | Self::TopologyKeys
            | Self::NamespacePolicy
            | Self::ClusterDefault => true,
            Self::InternalTrafficPolicyLocal
            | Self::ExternalTrafficPolicyLocal
            | Self::Hints
            | Self::Uniform => false,
        }
    }

    /// Whether only endpoints on the node are permitted.
    pub const fn is_local(self) -> bool {
        matches!(
            self,
            Self::InternalTrafficPolicyLocal | Self::ExternalTrafficPolicyLocal
        )
    }

    /// The name of a level in the notation of the source: `topologyKeys` has no aliases.
    pub fn level_name(self, level: &str) -> &str {
        if self == Self::TopologyKeys {
            label_of_alias(level)
        } else {
            level
        }
    }

    /// The value in output.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::InternalTrafficPolicyLocal | Self::ExternalTrafficPolicyLocal => {
                "trafficPolicyLocal"
            }
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
