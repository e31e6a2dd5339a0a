//! Drains: domains that should get no new connections for some time.

use std::sync::Arc;

use crate::policy::LevelKey;

/// A `TopologyDrain`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Drain {
    /// `metadata.name`.
    pub name: Arc<str>,
    /// `metadata.generation`, the version of the spec; 0 without an API server.
    pub generation: u64,
    /// The label (or Node name) whose values are drained.
    pub key: LevelKey,
    /// The drained values of `key`, each of them a domain.
    pub values: Vec<Arc<str>>,
    /// Whether endpoints, clients or both are drained.
    pub scope: DrainScope,
    /// Start, in milliseconds since 1970.
    pub starts: i64,
    /// End, in milliseconds since 1970.
    pub expires: i64,
    /// Seconds from all traffic to none.
    pub ramp_seconds: u32,
    /// What to do if no other endpoint remains.
    pub on_last_domain: OnLastDomain,
    /// Whether the drain applies to Services with a hard policy.
    pub hard_services: HardServices,
    /// The operator's reason.
    pub reason: Arc<str>,
}

impl Drain {
    /// A drain of the endpoints in `values`, at all times and without a ramp.
    pub fn of(name: &str, key: LevelKey, values: Vec<Arc<str>>) -> Self {
        Self {
            name: name.into(),
            generation: 0,
            key,
            values,
            scope: DrainScope::Endpoints,
            starts: 0,
            expires: i64::MAX,
            ramp_seconds: 0,
            on_last_domain: OnLastDomain::Ignore,
            hard_services: HardServices::Ignore,
            reason: Arc::default(),
        }
    }
}

/// The effect of a drain.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DrainScope {
    /// Endpoints in the domains get no new connections.
    #[default]
    Endpoints,
    /// Nodes in the domains stop preferring endpoints of their own domain.
    Clients,
    /// Both.
    Both,
}

/// What a drain does if no other endpoint remains.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OnLastDomain {
    /// The drain is ignored: serving from there is better than not serving.
    #[default]
    Ignore,
    /// The drain stays in force: clients are refused.
    Force,
}

/// Whether a drain applies to Services with a hard policy.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HardServices {
    /// It does not apply.
    #[default]
    Ignore,
    /// It applies.
    Apply,
}
