//! What one Service adds to the report: who decides for it, what is drained of it, and what it gets instead of what it asks.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use topology_core::model::Family;
use topology_core::policy::{LevelKey, PolicySource};
use topology_core::resolve::{Decision, Fact, LostBecause, Note, Refusal, Resolution};

/// What one Service adds to the report.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Told {
    /// The policy objects that decide, as `TopologyPolicy shop/near`.
    pub(super) policies: BTreeSet<Arc<str>>,
    /// By drain.
    pub(super) drains: BTreeMap<Arc<str>, Touched>,
    /// What it gets instead.
    pub(super) instead: Option<Instead>,
}

/// What a drain does to one Service.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Touched {
    /// Endpoints that take no new connections, of each family.
    v4: u32,
    v6: u32,
    /// Whether it passes the Service over.
    pub(super) skips: bool,
}

/// What a Service gets instead of what it asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Instead {
    pub(super) why: Why,
    /// The policy object that asked; none for annotations.
    pub(super) policy: Option<Arc<str>>,
    /// The mode that was asked; none where that cannot be told.
    pub(super) from: Option<&'static str>,
    pub(super) to: &'static str,
}

/// Why a Service gets something else than asked; the gravest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Why {
    /// Nothing is left inside the boundary.
    NoMatch,
    /// The Node object is not known.
    NodeUnknown,
    /// Too few endpoints are ready altogether.
    Panic,
    /// A drain would have left nothing.
    DrainIgnored,
    /// A level has fewer ready endpoints than it needs.
    BelowMin,
    /// The levels have no endpoint.
    Empty,
    /// No whole numbers give the shares.
    WeightClamped,
    /// One of the Service's annotations is not valid, so none is used, and all is well with what decides instead.
    Invalid,
}

/// What decides where topology does not.
const UNIFORM: &str = "Uniform";

impl Touched {
    /// Endpoints of both families.
    pub(super) fn endpoints(self) -> u64 {
        u64::from(self.v4) + u64::from(self.v6)
    }

    /// The ports of a Service have the same endpoints, mostly: counted is the port with the most.
    fn covers(&mut self, family: Family, endpoints: u32) {
        let most = match family {
            Family::V4 => &mut self.v4,
            Family::V6 => &mut self.v6,
        };
        *most = endpoints.max(*most);
    }
}

impl Why {
    /// The word in the report.
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::NoMatch => "NoMatch",
            Self::NodeUnknown => "NodeUnknown",
            Self::Panic => "Panic",
            Self::DrainIgnored => "DrainIgnored",
            Self::BelowMin => "BelowMin",
            Self::Empty => "Empty",
            Self::WeightClamped => "WeightClamped",
            Self::Invalid => "Invalid",
        }
    }
}

impl Told {
    /// What a resolution tells.
    pub fn of(resolution: &Resolution) -> Self {
        let mut told = Self::default();
        for server in &resolution.servers {
            told.policies.extend(server.decision.policy.clone());
            told.drained(&server.decision, server.server.key.family());
            let instead = instead(&server.decision);
            let graver = instead.filter(|new| {
                let known = told.instead.as_ref();
                known.is_none_or(|known| new.why < known.why)
            });
            told.instead = graver.or(told.instead);
        }
        told
    }

    /// Whether there is nothing to tell.
    pub(super) fn is_nothing(&self) -> bool {
        *self == Self::default()
    }

    fn drained(&mut self, decision: &Decision, family: Family) {
        for note in &decision.notes {
            if let Note::DrainIgnored { drain } | Note::DrainSpares { drain } = note {
                self.drains.entry(Arc::clone(drain)).or_default().skips = true;
            }
        }
        for fact in decision.stages.iter().flat_map(|stage| &stage.facts) {
            if let Fact::Drained {
                drain,
                endpoints,
                remaining,
            } = fact
                && remaining.is_zero()
            {
                let touched = self.drains.entry(Arc::clone(drain)).or_default();
                touched.covers(family, *endpoints);
            }
        }
    }
}

/// What one port gets instead of what was asked, if it does.
fn instead(decision: &Decision) -> Option<Instead> {
    let why = match decision.refusal {
        Some(Refusal::NoMatch | Refusal::Avoided) => Some((Why::NoMatch, "Nothing")),
        Some(Refusal::OwnNodeUnknown) => Some((Why::NodeUnknown, "Nothing")),
        Some(_) => None,
        None => noted(decision),
    };
    let of_what_decides = why.map(|(why, to)| Instead {
        why,
        policy: decision.policy.clone(),
        from: Some(decision.mode.title()),
        to,
    });
    of_what_decides.or_else(|| invalid(decision))
}

/// What decides instead of annotations that are not valid, unless it would have decided over valid ones, too.
fn invalid(decision: &Decision) -> Option<Instead> {
    let mut lost = decision.lost.iter();
    lost.find(|lost| lost.why == LostBecause::Invalid)?;
    let to = match decision.source {
        PolicySource::TrafficPolicyLocal | PolicySource::ClusterOverride => return None,
        PolicySource::Uniform => UNIFORM,
        _ => decision.mode.title(),
    };
    Some(Instead {
        why: Why::Invalid,
        policy: None,
        from: None,
        to,
    })
}

/// The gravest that the notes tell, and what decides then.
fn noted(decision: &Decision) -> Option<(Why, &'static str)> {
    let mode = decision.mode.title();
    let left = if only_any_is_left(decision) {
        UNIFORM
    } else {
        mode
    };
    let notes = decision.notes.iter().filter_map(|note| match note {
        Note::OwnNodeUnknown => Some((Why::NodeUnknown, UNIFORM)),
        Note::Panic => Some((Why::Panic, UNIFORM)),
        Note::DrainIgnored { .. } => Some((Why::DrainIgnored, left)),
        Note::Merged { .. } => Some((Why::BelowMin, left)),
        // That a level passes its share on is what the policy asks; that none is left is not.
        Note::EmptyLevel { .. } => (left == UNIFORM).then_some((Why::Empty, UNIFORM)),
        Note::WeightClamped => Some((Why::WeightClamped, mode)),
        _ => None,
    });
    notes.min_by_key(|(why, _)| *why)
}

/// Whether of several levels only `*` has anything to give.
fn only_any_is_left(decision: &Decision) -> bool {
    let levels = || decision.levels.iter();
    let mut giving = levels().filter(|level| !level.share.is_zero());
    levels().count() > 1 && giving.all(|level| level.key == LevelKey::Any)
}
