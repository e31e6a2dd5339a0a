//! What Events are called, and what they say.

use cluster::topology_agent::FallbackReason;
use topology_core::model::PolicyName;

use super::Instead;

/// Every Service gets what it asks again.
pub(super) const APPLIED: &str = "TopologyApplied";

/// Hints are left to another writer.
pub const HINTS_LEFT: &str = "TopologyAwareHintsLeft";

/// What is no reason for concern.
const GOOD: [&str; 2] = [APPLIED, "TopologyAwareHintsEnabled"];

/// The type of the Event.
pub(super) fn kind(word: &str) -> &'static str {
    if GOOD.contains(&word) {
        "Normal"
    } else {
        "Warning"
    }
}

/// The reason of the Event for a reason in a report, and why in a sentence; none for a reason of a later version.
pub(super) const fn words(reason: FallbackReason) -> Option<(&'static str, &'static str)> {
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
            "no Node has the label of a level (ipvs-topo explain says what was most likely meant)",
        ),
        FallbackReason::NoMatch => ("TopologyNoMatch", "nothing is left inside the boundary"),
        FallbackReason::Invalid => (
            "TopologyInvalid",
            "a topology annotation is not valid (ipvs-topo explain names it) and not used",
        ),
        FallbackReason::DrainIgnored => (
            "TopologyDrainIgnored",
            "a drain would have left nothing and is ignored",
        ),
        FallbackReason::SchedulerMissing => (
            "SchedulerMissing",
            "the node's kernel does not have the scheduler (modprobe ip_vs_NAME), so wrr is used with the same shares",
        ),
        FallbackReason::WeightClamped => (
            "WeightClamped",
            "no whole numbers give the shares under the scheduler",
        ),
        FallbackReason::Other => return None,
    })
}

/// What the Event says.
pub(super) fn note(word: &str, instead: &Instead) -> String {
    let mut all = FallbackReason::ALL.into_iter().filter_map(words);
    let why = all.find(|(of, _)| *of == word).map_or("", |(_, why)| why);
    let Instead {
        policy,
        from,
        to,
        nodes,
        ..
    } = instead;
    let who = policy
        .as_ref()
        .map_or_else(|| "the Service".to_owned(), PolicyName::path);
    let asks = if from.is_empty() {
        String::new()
    } else {
        format!(" asks for {from} and")
    };
    let plural = if *nodes == 1 { "" } else { "s" };
    format!("{why}: {who}{asks} gets {to} (first reported by {nodes} node{plural})")
}
