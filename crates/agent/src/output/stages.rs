//! The stages of a decision, in words and numbers, in the order in which they are taken.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use topology_core::quantise::Stage;
use topology_core::resolve::{Decision, LevelDecision, ResolvedServer};

use super::bar::short_percent;
use super::grid::{Look, paint};
use super::server::{Detail, table};
use super::summary::many;
use super::view::{ExplainView, StageView};
use super::{describe, words};

/// A resolved virtual server with its stages.
pub fn explain(resolved: &ResolvedServer) -> ExplainView {
    ExplainView {
        server: describe::server(resolved),
        stages: stages(resolved),
    }
}

/// The same for people.
pub fn text(views: &[ExplainView], width: Option<usize>) -> String {
    let mut text = String::new();
    for (number, view) in views.iter().enumerate() {
        if number > 0 {
            text.push('\n');
        }
        text.push_str(&table(
            std::slice::from_ref(&view.server),
            Detail::Planned,
            width,
        ));
        text.push('\n');
        for stage in &view.stages {
            lines(&mut text, stage);
        }
    }
    text
}

/// The stage's name before its first line only.
fn lines(text: &mut String, stage: &StageView) {
    let mut head = format!("{:<8}{:<9}", stage.stage, stage.name);
    for line in &stage.lines {
        // Writing to a String cannot fail.
        let _written = writeln!(text, "  {}{line}", paint(&head, Look::Quiet));
        head = " ".repeat(head.len());
    }
}

fn stages(resolved: &ResolvedServer) -> Vec<StageView> {
    let decision = &resolved.decision;
    let stage = |stage: &str, name: &str, lines: Vec<String>| StageView {
        stage: stage.to_owned(),
        name: name.to_owned(),
        lines,
    };
    let emitted = format!("{} with {}", resolved.server.key, real_servers(resolved));
    let nothing = "every level with a share has an endpoint".to_owned();
    vec![
        stage("source", "policy", vec![words::policy(decision)]),
        stage("S0", "usable", usable(decision)),
        stage(
            "S4",
            "levels",
            noted(decision, 4, levels(decision, level_count)),
        ),
        stage("S6", "empty", noted(decision, 6, vec![nothing])),
        stage("S9", "shares", levels(decision, level_share)),
        stage("S10", "weights", weights(decision)),
        stage("S11", "emit", vec![emitted]),
    ]
}

/// What was noted at a stage, else what there is to say without a note.
fn noted(decision: &Decision, stage: u8, otherwise: Vec<String>) -> Vec<String> {
    let notes = decision.notes.iter().filter(|note| note.stage() == stage);
    let notes: Vec<_> = notes.map(ToString::to_string).collect();
    if notes.is_empty() { otherwise } else { notes }
}

/// `6 of 8 endpoints chosen`, `1 out: not ready`.
fn usable(decision: &Decision) -> Vec<String> {
    let total = many(decision.endpoints.len() as u64, "endpoint");
    let mut out: BTreeMap<String, usize> = BTreeMap::new();
    for endpoint in decision
        .endpoints
        .iter()
        .filter(|endpoint| !endpoint.is_chosen())
    {
        *out.entry(endpoint.reason.to_string()).or_default() += 1;
    }
    let chosen = decision.endpoints.len() - out.values().sum::<usize>();
    let mut lines = vec![format!("{chosen} of {total} chosen")];
    lines.extend(
        out.iter()
            .map(|(reason, count)| format!("{count} out: {reason}")),
    );
    lines.extend(noted(decision, 0, Vec::new()));
    lines
}

fn levels(decision: &Decision, word: fn(&LevelDecision) -> String) -> Vec<String> {
    decision.levels.iter().map(word).collect()
}

fn level_count(level: &LevelDecision) -> String {
    let LevelDecision {
        key,
        usable,
        total,
        wanted,
        ..
    } = level;
    let wanted = short_percent(wanted.to_f64());
    format!(
        "{key}: wants {wanted}, {usable} of {} usable",
        many((*total).into(), "endpoint")
    )
}

fn level_share(level: &LevelDecision) -> String {
    let LevelDecision { key, usable, .. } = level;
    let share = level.share.to_f64();
    let (all, each) = (
        short_percent(share),
        short_percent(share / f64::from(*usable)),
    );
    match usable {
        0 => format!("{key}: nothing"),
        1 => format!("{key}: {all} for its endpoint"),
        count => format!("{key}: {all}, each of {count} gets {each}"),
    }
}

/// `exact; in a cycle of 120 connections`, then what each level gets of it.
fn weights(decision: &Decision) -> Vec<String> {
    let Some((stage, cycle)) = decision.quantised else {
        return vec!["none".to_owned()];
    };
    let how = match stage {
        Stage::Exact | Stage::WideExact => "exact",
        Stage::Search | Stage::WideSearch => "rounded within the tolerance",
        Stage::Clamped => "clamped at the largest weight, outside the tolerance",
    };
    let mut lines = vec![format!("{how}, one cycle is {}", many(cycle, "connection"))];
    lines.extend(levels(decision, |level| {
        format!("{}: {}", level.key, short_percent(level.achieved.to_f64()))
    }));
    lines
}

fn real_servers(resolved: &ResolvedServer) -> String {
    match &resolved.decision.refusal {
        Some(refusal) => format!("no real server: {refusal}; clients are refused"),
        None => many(resolved.server.real_servers.len() as u64, "real server"),
    }
}
