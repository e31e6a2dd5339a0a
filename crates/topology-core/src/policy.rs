//! What a Service asks of the topology: levels, shares and what happens to an empty level.
//!
//! Sources: the Service's annotations ([`from_annotations`]) and the old field `spec.topologyKeys`
//! of Kubernetes 1.17-1.21, KEP-536 ([`from_topology_keys`]).

mod annotations;
mod error;
mod level;
mod topology_keys;

pub use annotations::{PREFIX, from_annotations};
pub use error::{PolicyError, PolicyWarning};
pub(crate) use level::ZONE;
pub use level::{Level, LevelKey};
pub use topology_keys::from_topology_keys;

/// The most levels a policy may have; the limit `topologyKeys` had.
pub const MAX_LEVELS: usize = 16;

/// A preference order of levels with a share for each.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Policy {
    /// Where it was written.
    pub source: PolicySource,
    /// What it means as a whole.
    pub mode: Mode,
    /// Nearest first; empty only for [`Mode::None`].
    pub levels: Vec<Level>,
    /// Where the share of a level without endpoints goes.
    pub empty_tier: EmptyTier,
}

/// What decides the endpoints of a Service port: the first source that applies, never a mixture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PolicySource {
    /// `internalTrafficPolicy: Local`.
    TrafficPolicyLocal,
    /// Annotations on the Service.
    Annotation,
    /// `spec.topologyKeys`.
    TopologyKeys,
    /// `hints` of its `EndpointSlices`, as kube-proxy 1.35 reads them.
    Hints,
    /// Nothing: every ready endpoint alike.
    Uniform,
}

impl PolicySource {
    /// The word for it in output.
    pub const fn word(self) -> &'static str {
        match self {
            Self::TrafficPolicyLocal => "trafficPolicyLocal",
            Self::Annotation => "annotation",
            Self::TopologyKeys => "topologyKeys",
            Self::Hints => "hints",
            Self::Uniform => "uniform",
        }
    }
}

/// What a policy means as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Mode {
    /// The listed levels or a refusal.
    Hard,
    /// The first level with endpoints takes all.
    Prefer,
    /// Each level its share.
    Weighted,
    /// No preference.
    None,
}

impl Mode {
    /// The word for it in annotations and output.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Hard => "hard",
            Self::Prefer => "prefer",
            Self::Weighted => "weighted",
            Self::None => "none",
        }
    }
}

/// Where the share of a level without endpoints goes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum EmptyTier {
    /// To the next outer level that has endpoints, else to the nearest inner one.
    #[default]
    Cascade,
    /// To all levels that have endpoints, in proportion.
    Renormalize,
}

impl Policy {
    /// Whether endpoints on Nodes of more capacity take more of their level's share: only where annotations ask for
    /// levels, since `topologyKeys` means what it meant and mode `none` is every endpoint alike.
    pub fn uses_capacity(&self) -> bool {
        self.source == PolicySource::Annotation && self.mode != Mode::None
    }

    /// Whether endpoints outside the levels are never used.
    pub fn is_bounded(&self) -> bool {
        self.mode != Mode::None
            && self
                .levels
                .last()
                .is_none_or(|level| level.key != LevelKey::Any)
    }
}
