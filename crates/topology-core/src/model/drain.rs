//! Drains: domains that shall take no new connections for a while.

use std::sync::Arc;

use crate::policy::LevelKey;

/// A `TopologyDrain`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Drain {
    /// `metadata.name`.
    pub name: Arc<str>,
    /// `metadata.generation`: which writing of it this is; 0 where nothing counts them.
    pub generation: u64,
    /// What the domains are values of.
    pub key: LevelKey,
    /// The domains.
    pub values: Vec<Arc<str>>,
    /// Whom it is for.
    pub scope: DrainScope,
    /// When it began, milliseconds since 1970.
    pub starts: i64,
    /// When it ends, milliseconds since 1970.
    pub expires: i64,
    /// Seconds from all to nothing.
    pub ramp_seconds: u32,
    /// What happens where nothing else remains.
    pub on_last_domain: OnLastDomain,
    /// Whether Services with a hard policy take part.
    pub hard_services: HardServices,
    /// Why, in the words of whoever declared it.
    pub reason: Arc<str>,
}

impl Drain {
    /// A drain of the endpoints in `values` at any moment, without a ramp.
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

/// Whom a drain is for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DrainScope {
    /// Endpoints in the domains take no new connections.
    #[default]
    Endpoints,
    /// Nodes in the domains stop preferring their own.
    Clients,
    /// Both.
    Both,
}

/// What a drain does where nothing else remains.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OnLastDomain {
    /// It is ignored: better there than nowhere.
    #[default]
    Ignore,
    /// It holds: better nowhere than there.
    Force,
}

/// Whether a drain holds for Services with a hard policy.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HardServices {
    /// They do not take part.
    #[default]
    Ignore,
    /// They take part.
    Apply,
}
