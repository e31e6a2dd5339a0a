//! The contribution of one Service to the report: the deciding policies, drained endpoints, and fallbacks.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crd::topology_agent::FallbackReason;
use topology_core::model::{Family, PolicyName};
use topology_core::policy::{LevelKey, PolicySource};
use topology_core::resolve::{Decision, Fact, LostBecause, Note, Refusal, Resolution};

/// The contribution of one Service to the report.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Contribution {
    /// The policy objects that decide.
    pub(super) policies: BTreeSet<PolicyName>,
    /// By drain.
    pub(super) drains: BTreeMap<Arc<str>, DrainEffect>,
    /// The fallback, if any.
    pub(super) instead: Option<Instead>,
}

/// The effect of a drain on one Service.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct DrainEffect {
    /// Endpoints without new connections, of each family.
    v4: u32,
    v6: u32,
    /// Whether the drain does not apply to the Service.
    pub(super) skips: bool,
}

/// What a Service gets instead of what it requested.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Instead {
    pub(super) why: FallbackReason,
    /// The requesting policy object; `None` for annotations.
    pub(super) policy: Option<PolicyName>,
    /// The requested mode; `None` if unknown.
    pub(super) from: Option<&'static str>,
    pub(super) to: &'static str,
}

/// What decides instead of the topology.
const UNIFORM: &str = "Uniform";

impl DrainEffect {
    /// Endpoints of both families.
    pub(super) fn endpoints(self) -> u64 {
        u64::from(self.v4) + u64::from(self.v6)
    }

    /// The ports of a Service mostly have the same endpoints, so only the port with the most counts.
    fn covers(&mut self, family: Family, endpoints: u32) {
        let most = match family {
            Family::V4 => &mut self.v4,
            Family::V6 => &mut self.v6,
        };
        *most = endpoints.max(*most);
    }
}

impl Contribution {
    /// The contribution of a resolution.
    pub fn of(resolution: &Resolution) -> Self {
        let mut contribution = Self::default();
        for server in &resolution.servers {
            contribution.policies.extend(server.decision.policy.clone());
            contribution.drained(&server.decision, server.server.key.family());
            let instead = instead(&server.decision);
            let graver = instead.filter(|new| {
                let known = contribution.instead.as_ref();
                known.is_none_or(|known| new.why < known.why)
            });
            contribution.instead = graver.or(contribution.instead);
        }
        contribution
    }

    /// Whether there is nothing to report.
    pub(super) fn is_nothing(&self) -> bool {
        *self == Self::default()
    }

    fn drained(&mut self, decision: &Decision, family: Family) {
        for note in &decision.notes {
            if let Note::DrainIgnored { drain }
            | Note::DrainSpares { drain }
            | Note::DrainLocal { drain } = note
            {
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

/// The fallback of one port, if any.
fn instead(decision: &Decision) -> Option<Instead> {
    let why = match decision.refusal {
        Some(Refusal::NoMatch) if has_unknown_level(decision) => {
            Some((FallbackReason::LevelUnknown, "Nothing"))
        }
        Some(Refusal::NoMatch | Refusal::Avoided) => Some((FallbackReason::NoMatch, "Nothing")),
        Some(Refusal::OwnNodeUnknown) => Some((FallbackReason::NodeUnknown, "Nothing")),
        Some(Refusal::BoundaryUnread) => Some((FallbackReason::Invalid, "Nothing")),
        // No fallback, or not one of topology. A missing scheduler does not depend on the endpoints.
        Some(Refusal::NoEndpoints | Refusal::NoneReady | Refusal::NoneLocal | Refusal::Drained) => {
            noted(decision).filter(|(why, _)| *why == FallbackReason::SchedulerMissing)
        }
        None => noted(decision),
    };
    let of_what_decides = why.map(|(why, to)| Instead {
        why,
        policy: decision.policy.clone(),
        from: Some(decision.mode.api_value()),
        to,
    });
    // Errors of the owner last, so temporary conditions of endpoints must not hide them.
    let all = [of_what_decides, not_allowed(decision), invalid(decision)];
    all.into_iter().flatten().min_by_key(|instead| instead.why)
}

/// The fallback for a mode that the owner limits do not permit.
fn not_allowed(decision: &Decision) -> Option<Instead> {
    let mut notes = decision.notes.iter();
    let asked = notes.find_map(|note| {
        if let Note::NotAllowed { asked, .. } = note {
            Some(*asked)
        } else {
            None
        }
    })?;
    Some(Instead {
        why: FallbackReason::NotAllowed,
        policy: None,
        from: Some(asked.api_value()),
        to: in_use(decision)?,
    })
}

/// The fallback for annotations that are not valid, or that name a missing policy, unless the result would be the same
/// with valid ones.
fn invalid(decision: &Decision) -> Option<Instead> {
    let mut lost = decision.lost.iter();
    let all_lost = lost.any(|lost| lost.why == LostBecause::Invalid);
    let is_fault = |note: &Note| {
        matches!(
            note,
            Note::PartlyInvalid
                | Note::BoundaryUnread
                | Note::LastGoodStays
                | Note::NoSuchPolicy { .. }
        )
    };
    if !all_lost && !decision.notes.iter().any(is_fault) {
        return None;
    }
    Some(Instead {
        why: FallbackReason::Invalid,
        policy: None,
        from: None,
        to: in_use(decision)?,
    })
}

/// The deciding source; `None` if it is stronger than annotations.
fn in_use(decision: &Decision) -> Option<&'static str> {
    match decision.source {
        PolicySource::InternalTrafficPolicyLocal
        | PolicySource::ExternalTrafficPolicyLocal
        | PolicySource::ClusterOverride => None,
        PolicySource::Uniform => Some(UNIFORM),
        PolicySource::Annotation
        | PolicySource::TopologyKeys
        | PolicySource::NamespacePolicy
        | PolicySource::ClusterDefault
        | PolicySource::Hints => Some(decision.mode.api_value()),
    }
}

/// The most important note, and what decides then.
fn noted(decision: &Decision) -> Option<(FallbackReason, &'static str)> {
    let mode = decision.mode.api_value();
    let left = if only_any_is_left(decision) {
        UNIFORM
    } else {
        mode
    };
    let notes = decision.notes.iter().filter_map(|note| match note {
        Note::LevelUnknown { .. } => Some((FallbackReason::LevelUnknown, left)),
        Note::OwnNodeUnknown => Some((FallbackReason::NodeUnknown, UNIFORM)),
        Note::Panic => Some((FallbackReason::Panic, UNIFORM)),
        Note::DrainIgnored { .. } => Some((FallbackReason::DrainIgnored, left)),
        Note::Merged { .. } => Some((FallbackReason::BelowMin, left)),
        // Passing on a level's share is what the policy requests; having no level left is not.
        Note::EmptyLevel { .. } => (left == UNIFORM).then_some((FallbackReason::Empty, UNIFORM)),
        Note::SchedulerMissing { .. } => Some((FallbackReason::SchedulerMissing, mode)),
        Note::Clipped { .. } => Some((FallbackReason::Clipped, mode)),
        Note::WeightClamped { .. } => Some((FallbackReason::WeightClamped, mode)),
        // Errors of the owner: see `not_allowed` and `invalid`.
        Note::NotAllowed { .. }
        | Note::PartlyInvalid
        | Note::BoundaryUnread
        | Note::LastGoodStays
        | Note::ServingTerminating
        | Note::NoSuchPolicy { .. }
        | Note::HintsMissing { .. }
        | Note::PoliciesNotListed { .. }
        | Note::LevelUnreachable { .. }
        | Note::DrainSpares { .. }
        | Note::DrainLocal { .. }
        | Note::AvoidIgnored { .. }
        | Note::AvoidLocal
        | Note::Capped { .. } => None,
    });
    notes.min_by_key(|(why, _)| *why)
}

fn has_unknown_level(decision: &Decision) -> bool {
    let mut notes = decision.notes.iter();
    notes.any(|note| matches!(note, Note::LevelUnknown { .. }))
}

/// Whether of several levels only `*` has endpoints.
fn only_any_is_left(decision: &Decision) -> bool {
    let levels = || decision.levels.iter();
    let mut giving = levels().filter(|level| !level.share.is_zero());
    levels().count() > 1 && giving.all(|level| level.key == LevelKey::Any)
}
