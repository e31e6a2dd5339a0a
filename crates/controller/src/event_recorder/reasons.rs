//! Reasons, types and notes of Events.

use crd::topology_agent::FallbackReason;
use topology_core::model::PolicyName;

use super::fallback::ServiceFallback;
use topology_core::model::ObjectName;

/// The object of an Event (a `ClusterTopologyPolicy` has an empty namespace) and its reason.
pub type Key = (ObjectName, &'static str);

/// The policy of the Service is applied as requested again.
pub(super) const APPLIED: &str = "TopologyApplied";

/// Another writer of hints was found, so its hints are kept.
pub const HINTS_LEFT: &str = "TopologyAwareHintsLeft";

/// No Node has one of the labels of a `ClusterTopologyPolicy`.
pub const LEVEL_UNKNOWN: &str = "LevelUnknown";

/// Each label of a `ClusterTopologyPolicy` is on some Node again.
pub const LEVELS_KNOWN: &str = "LevelsKnown";

const NORMAL: [&str; 3] = [APPLIED, LEVELS_KNOWN, "TopologyAwareHintsEnabled"];

/// All other reasons are about a Service.
pub(super) fn is_about_policy(reason: &str) -> bool {
    [LEVEL_UNKNOWN, LEVELS_KNOWN].contains(&reason)
}

pub(super) fn event_type(reason: &str) -> &'static str {
    if NORMAL.contains(&reason) {
        "Normal"
    } else {
        "Warning"
    }
}

/// Reason and explanation of the Event; `None` for a fallback of a later version.
pub(super) const fn of_fallback(reason: FallbackReason) -> Option<(&'static str, &'static str)> {
    Some(match reason {
        FallbackReason::Empty => ("TopologyFallbackEmpty", "no level has an endpoint but *"),
        FallbackReason::BelowMin => (
            "TopologyFallbackBelowMin",
            "a level has fewer ready endpoints than it needs",
        ),
        FallbackReason::Panic => (
            "TopologyFallbackPanic",
            "too few endpoints are ready altogether",
        ),
        FallbackReason::NodeUnknown => (
            "TopologyFallbackNodeUnknown",
            "the Node object is not known",
        ),
        FallbackReason::LevelUnknown => (
            "TopologyLevelUnknown",
            "no Node has the label of a level (ipvs-topo explain suggests the label that was probably meant)",
        ),
        FallbackReason::NoMatch => ("TopologyNoMatch", "nothing is left inside the boundary"),
        FallbackReason::Invalid => (
            "TopologyInvalid",
            "a topology annotation is not valid, or names no TopologyPolicy of the namespace (ipvs-topo explain names it), and is not used",
        ),
        FallbackReason::NotAllowed => (
            "TopologyNotAllowed",
            "ownerLimits of a ClusterTopologyPolicy do not allow the mode (ipvs-topo explain names the policy)",
        ),
        FallbackReason::DrainIgnored => (
            "TopologyDrainIgnored",
            "a drain would have left nothing and is ignored",
        ),
        FallbackReason::SchedulerMissing => (
            "SchedulerMissing",
            "the node's kernel does not have the scheduler (modprobe ip_vs_NAME), so wrr is used with the same shares",
        ),
        FallbackReason::Clipped => (
            "TopologyClipped",
            "ownerLimits of a ClusterTopologyPolicy do not allow so small a max-overload, so the minimum that they allow is used (ipvs-topo explain names both)",
        ),
        FallbackReason::WeightClamped => (
            "WeightClamped",
            "no whole numbers give the shares under the scheduler",
        ),
        FallbackReason::Other => return None,
    })
}

pub(super) fn note(reason: &str, fallback: &ServiceFallback) -> String {
    let mut all = FallbackReason::ALL.into_iter().filter_map(of_fallback);
    let why = all
        .find(|(known, _)| *known == reason)
        .map_or("", |(_, why)| why);
    let ServiceFallback {
        policy,
        from,
        to,
        nodes,
        ..
    } = fallback;
    let subject = policy
        .as_ref()
        .map_or_else(|| "the Service".to_owned(), PolicyName::path);
    let request = if from.is_empty() {
        String::new()
    } else {
        format!(" asks for {from} and")
    };
    let plural = if *nodes == 1 { "" } else { "s" };
    format!("{why}: {subject}{request} gets {to} (first reported by {nodes} node{plural})")
}
