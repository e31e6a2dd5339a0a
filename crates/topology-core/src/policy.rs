//! What a Service asks of the topology: levels, shares and what happens when things are not as they should be.
//!
//! Sources: the Service's annotations ([`from_annotations`]), the old field `spec.topologyKeys` of Kubernetes
//! 1.17-1.21, KEP-536 ([`from_topology_keys`]), and the policies of administrators
//! ([`TopologyPolicy`](crate::model::TopologyPolicy)). All fill the same [`Policy`].

mod annotations;
mod error;
mod level;
mod mode;
mod parts;
mod source;
mod suggest;
mod topology_keys;

use std::sync::Arc;

pub use annotations::{
    ANNOTATIONS, Annotation, AnnotationReading, AnnotationRequest, PREFIX, ValueKind,
    beside_topology_keys, from_annotations, read_annotations,
};
pub use error::{PolicyError, PolicyWarning};
pub use level::{Level, LevelKey, MinReady, ZONE};
pub use mode::Mode;
pub use parts::{Avoid, AvoidMode, Demand, DemandKind, EmptyTier, OnNoMatch, Residual, Weighting};
pub use source::PolicySource;
pub(crate) use suggest::in_full;
pub use suggest::suggest;
pub use topology_keys::{TopologyKeysReading, from_topology_keys, read_topology_keys};

use crate::scheduler::Scheduler;

/// The most levels a policy may have; the limit `topologyKeys` had.
pub const MAX_LEVELS: usize = 16;

/// A preference order of levels with a share for each, and every choice about it.
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
    /// What the weights of the levels mean.
    pub weighting: Weighting,
    /// Percent, 100 or more: a level keeps its share while ready x this >= all of it; none = a level
    /// keeps its share until it is empty.
    pub overprovision: Option<u32>,
    /// Seconds that a level which lost endpoints waits before it grows again.
    pub recovery_hold: u32,
    /// Percent of a level's fair share that its endpoints may take beyond it; none = no cap.
    pub max_overload: Option<u32>,
    /// How the cap estimates the demand of a domain.
    pub demand: Demand,
    /// Where what the cap turns away goes.
    pub residual: Residual,
    /// With fewer usable endpoints, all are alike; not for hard policies.
    pub min_endpoints: u32,
    /// With fewer percent of the endpoints ready, all are alike; not for hard policies.
    pub panic_percent: u8,
    /// Domains of this node whose endpoints are not desired.
    pub avoid: Vec<Avoid>,
    /// What clients see where a hard policy matches nothing.
    pub on_no_match: OnNoMatch,
    /// The largest weight before the farthest level is thinned out; none = never thinned out.
    pub subset_max_weight: Option<u32>,
    /// Seconds in which a new endpoint grows from a tenth to all of its share.
    pub slow_start: u32,
    /// The kernel's scheduler for this Service; none = the agent's.
    pub scheduler: Option<Scheduler>,
    /// Whether it says nothing about levels: what it avoids and its scheduler are added to what decides.
    pub adds: bool,
}

impl Policy {
    /// A policy of `mode` over `levels` with every other choice at its default; a cap of 0 for [`Mode::Balanced`].
    pub fn new(source: PolicySource, mode: Mode, levels: Vec<Level>) -> Self {
        Self {
            source,
            mode,
            levels,
            empty_tier: EmptyTier::default(),
            weighting: Weighting::default(),
            overprovision: None,
            recovery_hold: 0,
            max_overload: (mode == Mode::Balanced).then_some(0),
            demand: Demand::default(),
            residual: Residual::default(),
            min_endpoints: 0,
            panic_percent: 0,
            avoid: Vec::new(),
            on_no_match: OnNoMatch::default(),
            subset_max_weight: None,
            slow_start: 0,
            scheduler: None,
            adds: false,
        }
    }

    /// What annotations without levels added to a policy of `topologyKeys`, as a policy of its own; none if nothing.
    pub fn added_to_topology_keys(&self) -> Option<Self> {
        let adds = !self.avoid.is_empty()
            || self.scheduler.is_some()
            || self.on_no_match != OnNoMatch::default();
        (self.source == PolicySource::TopologyKeys && adds).then(|| Self {
            avoid: self.avoid.clone(),
            on_no_match: self.on_no_match,
            scheduler: self.scheduler,
            adds: true,
            ..Self::new(PolicySource::Annotation, Mode::None, Vec::new())
        })
    }

    /// Whether endpoints on Nodes of more capacity take more of their level's share: not for `topologyKeys`, which
    /// mean what they meant, nor for mode `none`, which is every endpoint alike.
    pub fn uses_capacity(&self) -> bool {
        self.source != PolicySource::TopologyKeys && self.mode != Mode::None
    }

    /// The labels of Nodes that its levels and what it avoids go by.
    pub fn label_keys(&self) -> impl Iterator<Item = &Arc<str>> {
        let levels = self.levels.iter().map(|level| &level.key);
        levels
            .chain(self.avoid.iter().map(|avoid| &avoid.key))
            .filter_map(LevelKey::label)
    }

    /// The levels that lie inside a level before them, each with the first such.
    pub(crate) fn covered_levels(&self) -> impl Iterator<Item = (&LevelKey, &LevelKey)> {
        let keys = || self.levels.iter().map(|level| &level.key);
        keys().enumerate().filter_map(move |(at, key)| {
            let by = keys().take(at).find(|before| key.is_inside(before))?;
            Some((key, by))
        })
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
