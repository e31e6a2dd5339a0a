//! A topology policy: levels, shares, and what to do in exceptional cases.
//!
//! Sources are the Service's annotations ([`from_annotations`]), the field `spec.topologyKeys` of Kubernetes 1.17-1.21
//! (KEP-536, [`from_topology_keys`]), and the policies of administrators
//! ([`TopologyPolicy`](crate::model::TopologyPolicy)). All of them result in a [`Policy`].

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
    ANNOTATIONS, Annotation, AnnotationChoice, AnnotationReading, PREFIX, ValueKind,
    beside_topology_keys, from_annotations, read_annotations,
};
pub use error::{PolicyError, PolicyWarning};
pub use level::{Level, LevelKey, MinReady, ZONE};
pub use mode::Mode;
pub use parts::{Avoid, AvoidMode, Demand, DemandKind, EmptyTier, OnNoMatch, Residual, Weighting};
pub use source::PolicySource;
pub(crate) use suggest::label_of_alias;
pub use suggest::suggest;
pub use topology_keys::{TopologyKeysReading, from_topology_keys, read_topology_keys};

use crate::scheduler::Scheduler;

/// The largest number of levels in a policy, the same as for `topologyKeys`.
pub const MAX_LEVELS: usize = 16;

/// A preference order of levels with a share for each, and all options.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Policy {
    /// Where the policy was written.
    pub source: PolicySource,
    /// The meaning of the levels.
    pub mode: Mode,
    /// Nearest first; empty only for [`Mode::None`].
    pub levels: Vec<Level>,
    /// Where the share of a level without endpoints goes.
    pub empty_tier: EmptyTier,
    /// The meaning of the weights of levels.
    pub weighting: Weighting,
    /// Percent, 100 or more: a level keeps its share while its ready endpoints times this are at least all of its
    /// endpoints. `None` = it keeps its share until it is empty.
    pub overprovision: Option<u32>,
    /// Seconds that a level which lost endpoints waits before it counts more again.
    pub recovery_hold: u32,
    /// Percent of a level's fair share that its endpoints may get in addition; `None` = no cap.
    pub max_overload: Option<u32>,
    /// How the cap estimates the demand of a domain.
    pub demand: Demand,
    /// Where traffic above the cap goes.
    pub residual: Residual,
    /// With fewer usable endpoints all get the same share; not for hard policies.
    pub min_endpoints: u32,
    /// With fewer percent of the endpoints ready all get the same share; not for hard policies.
    pub panic_percent: u8,
    /// Domains of this node whose endpoints should not be used.
    pub avoid: Vec<Avoid>,
    /// What clients get if a hard policy matches no endpoint.
    pub on_no_match: OnNoMatch,
    /// The largest weight before the farthest level is thinned out; `None` = never.
    pub subset_max_weight: Option<u32>,
    /// Seconds in which a new endpoint grows from a tenth of its share to all of it.
    pub slow_start: u32,
    /// The IPVS scheduler for this Service; `None` = the agent's.
    pub scheduler: Option<Scheduler>,
    /// Whether the policy has no levels. Its avoided domains and scheduler are then added to the policy that decides.
    pub adds: bool,
}

impl Policy {
    /// A policy of `mode` with `levels` and default options; the cap is 0 for [`Mode::Balanced`].
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

    /// The part that annotations without levels added to the policy of `topologyKeys`, as a policy of its own.
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

    /// Whether the capacity of Nodes weights endpoints: not for `topologyKeys`, which keep their original meaning, nor
    /// for mode `none`, where all endpoints get the same share.
    pub fn uses_capacity(&self) -> bool {
        self.source != PolicySource::TopologyKeys && self.mode != Mode::None
    }

    /// The Node labels that its levels and avoided domains use.
    pub fn label_keys(&self) -> impl Iterator<Item = &Arc<str>> {
        let levels = self.levels.iter().map(|level| &level.key);
        levels
            .chain(self.avoid.iter().map(|avoid| &avoid.key))
            .filter_map(LevelKey::label)
    }

    /// The levels that lie inside an earlier level, each with the first such level.
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
