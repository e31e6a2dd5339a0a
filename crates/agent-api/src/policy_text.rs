//! Describes policies on one line, and the reasons why endpoints are excluded.

// A new source, reason, note or fact must be handled everywhere, not by a `_` arm.
#![warn(clippy::wildcard_enum_match_arm)]

use std::collections::BTreeMap;

use topology_core::policy::{LevelKey, Mode, PolicySource};
use topology_core::resolve::{Decision, LevelDecision, Reason};

use crate::numbers::short_percent;

/// The policy of a decision on one line, with the domains that it avoids.
pub fn policy(decision: &Decision) -> String {
    let mut words = chosen(decision);
    for avoid in &decision.avoided {
        let unless = if avoid.soft { " if others remain" } else { "" };
        words.extend(["; not ", &place(&avoid.key), unless]);
    }
    words
}

/// The source of a decision on one line.
fn chosen(decision: &Decision) -> String {
    let source = match decision.source {
        PolicySource::InternalTrafficPolicyLocal => {
            return "endpoints on this node only (internalTrafficPolicy: Local)".to_owned();
        }
        PolicySource::ExternalTrafficPolicyLocal => {
            return "endpoints on this node only (externalTrafficPolicy: Local)".to_owned();
        }
        PolicySource::Hints => return hints(&decision.levels),
        PolicySource::Uniform => return "every ready endpoint alike (no policy)".to_owned(),
        PolicySource::Annotation => "annotation",
        PolicySource::TopologyKeys => "topologyKeys",
        PolicySource::ClusterOverride | PolicySource::ClusterDefault => "ClusterTopologyPolicy",
        PolicySource::NamespacePolicy => "TopologyPolicy",
    };
    let words = match decision.mode {
        Mode::None => "every ready endpoint alike".to_owned(),
        Mode::Weighted => weighted(&decision.levels),
        Mode::Prefer | Mode::Hard | Mode::Balanced => ordered(&decision.levels),
    };
    format!("{words} ({source})")
}

fn hints(levels: &[LevelDecision]) -> String {
    let place = match levels.first().map(|level| &level.key) {
        Some(LevelKey::Node) => "this node",
        _ => "this zone",
    };
    format!("endpoints hinted for {place} (EndpointSlice hints)")
}

/// `80 % on this node, 15 % in this zone, 5 % anywhere`.
fn weighted(levels: &[LevelDecision]) -> String {
    let mut words: Vec<_> = levels
        .iter()
        .map(|level| match level.configured {
            0 => format!("{} if nearer levels are empty", place(&level.key)),
            _ => format!(
                "{} {}",
                short_percent(level.desired.to_f64()),
                place(&level.key)
            ),
        })
        .collect();
    if is_bounded(levels) {
        words.push("nowhere else".to_owned());
    }
    words.join(", ")
}

/// `on this node, else in this zone, else anywhere`.
fn ordered(levels: &[LevelDecision]) -> String {
    let mut words: Vec<_> = levels.iter().map(|level| place(&level.key)).collect();
    if is_bounded(levels) {
        words.push("refused".to_owned());
    }
    words.join(", else ")
}

fn is_bounded(levels: &[LevelDecision]) -> bool {
    levels.last().is_none_or(|level| level.key != LevelKey::Any)
}

/// The place of a level, seen from this node.
fn place(key: &LevelKey) -> String {
    match key {
        LevelKey::Node => "on this node".to_owned(),
        LevelKey::Any => "anywhere".to_owned(),
        LevelKey::Label(_) => match key.to_string() {
            label if label.contains(['/', ' ']) => format!("with the same {label}"),
            word => format!("in this {word}"),
        },
    }
}

/// `1 out: not ready`, for each reason that belongs to stage `number`.
pub fn out(decision: &Decision, number: u8) -> Vec<String> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let out = decision
        .endpoints
        .iter()
        .filter(|endpoint| !endpoint.is_chosen());
    for endpoint in out.filter(|endpoint| stage_of(decision, endpoint.reason) == number) {
        *counts.entry(endpoint.reason.to_string()).or_default() += 1;
    }
    counts
        .iter()
        .map(|(reason, count)| format!("{count} out: {reason}"))
        .collect()
}

/// The stage that excludes endpoints for `reason`.
fn stage_of(decision: &Decision, reason: Reason) -> u8 {
    match reason {
        Reason::Drained | Reason::Draining => 1,
        Reason::Avoided => 2,
        Reason::Recovering => 5,
        Reason::NearerLevelTakesAll | Reason::ZoneFull => 9,
        Reason::Subset => 10,
        Reason::OutsideLevels if loses(decision, 4) => 4,
        Reason::OutsideLevels
        | Reason::InLevel
        | Reason::Ready
        | Reason::Local
        | Reason::NodeHint
        | Reason::ZoneHint
        | Reason::ServingTerminating
        | Reason::NotReady
        | Reason::Terminating
        | Reason::Disconnected
        | Reason::NotLocal
        | Reason::HintedElsewhere
        | Reason::OwnNodeUnknown
        | Reason::BadAddress => 0,
    }
}

fn loses(decision: &Decision, number: u8) -> bool {
    let record = decision
        .stages
        .iter()
        .find(|record| record.number == number);
    record.is_some_and(|record| record.after < record.before)
}
