//! Policies of administrators and namespaces.

use std::fmt;
use std::sync::Arc;

use super::{PolicyName, Selector};
use crate::policy::{Mode, Policy};

/// A `TopologyPolicy` or, without a namespace, a `ClusterTopologyPolicy`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TopologyPolicy {
    /// The namespace; `None` for a `ClusterTopologyPolicy`.
    pub namespace: Option<Arc<str>>,
    /// `metadata.name`.
    pub name: Arc<str>,
    /// `metadata.creationTimestamp`, seconds since 1970. Of two policies with equal priority the older one wins.
    pub created: Option<i64>,
    /// `metadata.generation`, the version of the spec; 0 without an API server.
    pub generation: u64,
    /// `spec.priority`: the highest wins.
    pub priority: i32,
    /// Whether the policy overrides annotations; a namespaced one never does.
    pub enforcement: Enforcement,
    /// Selects namespaces by their labels; a namespaced policy applies to its own namespace.
    pub namespace_selector: Selector,
    /// Selects Services.
    pub service_selector: Selector,
    /// Selects client Nodes.
    pub node_selector: Selector,
    /// The ports by name; empty = all.
    pub port_names: Vec<Arc<str>>,
    /// The levels and options.
    pub policy: Policy,
    /// Limits for annotations of its Services; `None` = no limits.
    pub owner_limits: Option<OwnerLimits>,
}

impl TopologyPolicy {
    /// Namespace and name.
    pub fn id(&self) -> PolicyName {
        PolicyName {
            namespace: self.namespace.clone(),
            name: self.name.clone(),
        }
    }
}

impl fmt::Display for TopologyPolicy {
    /// Kind and name.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.id().fmt(f)
    }
}

/// Whether a `ClusterTopologyPolicy` overrides annotations.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Enforcement {
    /// It applies to Services without topology annotations.
    #[default]
    Default,
    /// It overrides annotations.
    Override,
}

/// Limits for annotations of the Services of a policy.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct OwnerLimits {
    /// Permitted modes; empty = all.
    pub allowed_modes: Vec<Mode>,
    /// The least permitted `max-overload`, in percent.
    pub min_max_overload: Option<u32>,
}
