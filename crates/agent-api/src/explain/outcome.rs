//! Describes the difference between two decisions.

use topology_core::policy::LevelKey;
use topology_core::resolve::{Decision, EndpointDecision, Fact, Reason};

use crate::numbers::short_percent;
use crate::policy_text;

/// Shares that differ by less count as equal.
const NOTICED: f64 = 0.005;

/// Describes what `after` changes; `None` if the difference is negligible.
pub(super) fn difference(before: &Decision, after: &Decision) -> Option<String> {
    let mut words = Vec::new();
    let other_source = (before.source, &before.policy) != (after.source, &after.policy);
    if other_source {
        words.push(policy_text::policy(after));
    }
    match (&before.refusal, &after.refusal) {
        (Some(_), None) => words.push("clients are served".to_owned()),
        (None, Some(refusal)) => words.push(format!("clients are refused: {refusal}")),
        _ => {}
    }
    let (merged_before, merged_after) = (merged(before), merged(after));
    let ended = merged_before
        .iter()
        .filter(|level| !merged_after.contains(level));
    words.extend(ended.map(|level| format!("ends the merge of level {level}")));
    let began = merged_after
        .iter()
        .filter(|level| !merged_before.contains(level));
    words.extend(began.map(|level| format!("level {level} merges outward")));
    match (is_alike(before), is_alike(after)) {
        (true, false) => words.push("levels count again".to_owned()),
        (false, true) => words.push("all endpoints become alike".to_owned()),
        _ => {}
    }
    let shares = shares(before, after);
    if !other_source && !shares.is_empty() {
        words.push(shares.join(", "));
    }
    if words.is_empty() {
        words.extend(freed(before, after));
    }
    (!words.is_empty()).then(|| words.join("; "))
}

/// Endpoints that a drain no longer keeps from new connections.
fn freed(before: &Decision, after: &Decision) -> Option<String> {
    let drained = |endpoint: &&EndpointDecision| {
        matches!(endpoint.reason, Reason::Drained | Reason::Draining)
    };
    let still: Vec<_> = after.endpoints.iter().filter(drained).collect();
    let was = before.endpoints.iter().filter(drained);
    let freed = was.filter(|was| {
        let same = |now: &&EndpointDecision| (now.address, now.port) == (was.address, was.port);
        !still.iter().any(same)
    });
    match freed.count() {
        0 => None,
        1 => Some("the drained endpoint takes its share again".to_owned()),
        count => Some(format!("{count} drained endpoints take their share again")),
    }
}

fn merged(decision: &Decision) -> Vec<&LevelKey> {
    let facts = decision.stages.iter().flat_map(|stage| &stage.facts);
    let levels = facts.filter_map(|fact| {
        if let Fact::Merged { level, .. } = fact {
            Some(level)
        } else {
            None
        }
    });
    levels.collect()
}

/// Whether a threshold turned topology off.
fn is_alike(decision: &Decision) -> bool {
    let mut facts = decision.stages.iter().flat_map(|stage| &stage.facts);
    facts.any(|fact| matches!(fact, Fact::TooFew { .. } | Fact::Panic { .. }))
}

/// `zone 15 % to 95 %`, for each level whose share differs.
fn shares(before: &Decision, after: &Decision) -> Vec<String> {
    let share = |decision: &Decision, key: &LevelKey| {
        let level = decision.levels.iter().find(|level| level.key == *key);
        level.map_or(0.0, |level| level.share.to_f64())
    };
    let added = after
        .levels
        .iter()
        .filter(|level| before.levels.iter().all(|known| known.key != level.key));
    let keys = before.levels.iter().chain(added).map(|level| &level.key);
    let pairs = keys.map(|key| (key, share(before, key), share(after, key)));
    let changed = pairs.filter(|(_, before, after)| (before - after).abs() > NOTICED);
    changed
        .map(|(key, before, after)| {
            format!(
                "{key} {} to {}",
                short_percent(before),
                short_percent(after)
            )
        })
        .collect()
}
