//! What Events are called, and what they say.

use super::Instead;

/// Every Service gets what it asks again.
pub(super) const APPLIED: &str = "TopologyApplied";

/// Hints are left to another writer.
pub const HINTS_LEFT: &str = "TopologyAwareHintsLeft";

/// What is no reason for concern.
const GOOD: [&str; 2] = [APPLIED, "TopologyAwareHintsEnabled"];

/// By the reason in a report: the reason of the Event, and why in a sentence.
const WORDS: [(&str, &str, &str); 8] = [
    (
        "Empty",
        "TopologyFallbackEmpty",
        "no level has an endpoint but *",
    ),
    (
        "BelowMin",
        "TopologyFallbackBelowMin",
        "a level has fewer ready endpoints than it needs",
    ),
    (
        "Panic",
        "TopologyFallbackPanic",
        "too few endpoints are ready altogether",
    ),
    (
        "NodeUnknown",
        "TopologyFallbackNodeUnknown",
        "the Node object is not known",
    ),
    (
        "NoMatch",
        "TopologyNoMatch",
        "nothing is left inside the boundary",
    ),
    (
        "Invalid",
        "TopologyInvalid",
        "a topology annotation is not valid (ipvs-topo explain names it), so none of the Service's is used",
    ),
    (
        "DrainIgnored",
        "TopologyDrainIgnored",
        "a drain would have left nothing and is ignored",
    ),
    (
        "WeightClamped",
        "WeightClamped",
        "no whole numbers give the shares",
    ),
];

/// The type of the Event.
pub(super) fn kind(word: &str) -> &'static str {
    if GOOD.contains(&word) {
        "Normal"
    } else {
        "Warning"
    }
}

/// The reason of the Event for a reason in a report, and why.
pub(super) fn words(reason: &str) -> Option<(&'static str, &'static str)> {
    let mut all = WORDS.iter();
    let found = all.find(|(of, ..)| *of == reason)?;
    Some((found.1, found.2))
}

/// What the Event says.
pub(super) fn note(word: &str, instead: &Instead) -> String {
    let why = WORDS.iter().find(|(_, of, _)| *of == word);
    let why = why.map_or("", |(.., why)| why);
    let Instead {
        policy,
        from,
        to,
        nodes,
        ..
    } = instead;
    let who = if policy.is_empty() {
        "the Service"
    } else {
        policy
    };
    let asks = if from.is_empty() {
        String::new()
    } else {
        format!(" asks for {from} and")
    };
    let plural = if *nodes == 1 { "" } else { "s" };
    format!("{why}: {who}{asks} gets {to} (first reported by {nodes} node{plural})")
}
