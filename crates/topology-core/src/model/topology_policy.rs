//! Policies of administrators and namespaces.

use std::fmt;
use std::sync::Arc;

use super::{PolicyName, Selector};
use crate::policy::{Mode, Policy};

/// A `TopologyPolicy` or, without a namespace, a `ClusterTopologyPolicy`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TopologyPolicy {
    /// Its namespace; none for a `ClusterTopologyPolicy`.
    pub namespace: Option<Arc<str>>,
    /// `metadata.name`.
    pub name: Arc<str>,
    /// `metadata.creationTimestamp`, seconds since 1970; the older of two of equal priority wins.
    pub created: Option<i64>,
    /// `metadata.generation`: which writing of it this is; 0 where nothing counts them.
    pub generation: u64,
    /// The higher wins.
    pub priority: i32,
    /// Whether it beats annotations; a namespaced one never does.
    pub enforcement: Enforcement,
    /// The namespaces it is for, by their labels; a namespaced one is for its own.
    pub namespace_selector: Selector,
    /// The Services it is for.
    pub service_selector: Selector,
    /// The client Nodes it is for.
    pub node_selector: Selector,
    /// The ports it is for, by name; empty = all.
    pub port_names: Vec<Arc<str>>,
    /// What it asks for.
    pub policy: Policy,
    /// What annotations of its Services may ask for; none = anything.
    pub owner_limits: Option<OwnerLimits>,
}

impl TopologyPolicy {
    /// Its identity.
    pub fn id(&self) -> PolicyName {
        PolicyName {
            namespace: self.namespace.clone(),
            name: self.name.clone(),
        }
    }
}

impl fmt::Display for TopologyPolicy {
    /// Kind and name, as people write them.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.id().fmt(f)
    }
}

/// Whether a policy of the cluster beats annotations.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Enforcement {
    /// It is for Services that say nothing themselves.
    #[default]
    Default,
    /// It beats annotations.
    Override,
}

/// What annotations of Services under a policy may ask for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct OwnerLimits {
    /// The modes they may name; empty = all.
    pub allowed_modes: Vec<Mode>,
    /// The least `max-overload` they may set, in percent.
    pub min_max_overload: Option<u32>,
}
