//! Parses Nodes, slices and expected results in the notation of the tests.

mod rules;
mod tables;

use std::collections::BTreeMap;
use std::sync::Arc;

use super::allocation::{Allocation, EndpointCounts, Quota, ZoneMoves};
use super::{
    HintEvent, HintMode, HintProblem, HintedEndpoint, HintedSlice, HintedSlices, Zones, auto,
    reconcile, write,
};
use crate::model::{Endpoint, EndpointSlice, Family, Hints, Node, ObjectName};
use crate::ratio::Ratio;

fn node(name: usize, zone: &str, cpu_milli: u64) -> Node {
    let labels = [(Arc::from("topology.kubernetes.io/zone"), Arc::from(zone))];
    Node {
        labels: labels.into_iter().collect(),
        cpu_milli,
        ..Node::new(&format!("n{name}"))
    }
}

fn zones(cpu: &BTreeMap<String, u64>) -> Option<Zones> {
    let nodes: Vec<Node> = cpu
        .iter()
        .enumerate()
        .map(|(number, (zone, cpu))| node(number, zone, *cpu))
        .collect();
    Zones::of(&nodes)
}

/// An endpoint in the notation of the file's legend.
fn member(text: &str) -> HintedEndpoint {
    let (place, hints) = match text.split_once('=') {
        Some((place, zones)) => (place, Some(zones)),
        None => (text, None),
    };
    let (zone, condition) = place.split_at(place.len() - 1);
    HintedEndpoint {
        node: (!zone.is_empty()).then(|| Arc::from(format!("node-{zone}"))),
        zone: (!zone.is_empty()).then(|| zone.into()),
        ready: match condition {
            "+" => Some(true),
            "-" => Some(false),
            "?" => None,
            other => panic!("unknown condition {other}"),
        },
        hints: hints.map(|zones| Hints {
            zones: zones
                .split(',')
                .filter(|zone| !zone.is_empty())
                .map(Arc::from)
                .collect(),
            nodes: Vec::new(),
        }),
    }
}

fn slice(members: &[String]) -> HintedSlice {
    HintedSlice {
        name: "x".into(),
        members: members.iter().map(|text| member(text)).collect(),
    }
}

fn slices(all: &[Vec<String>]) -> Vec<HintedSlice> {
    all.iter().map(|members| slice(members)).collect()
}

fn counts(slices: &[HintedSlice]) -> EndpointCounts {
    let mut counts = EndpointCounts::new();
    let hints = slices
        .iter()
        .flat_map(|slice| &slice.members)
        .filter_map(|member| member.hints.as_ref());
    for zone in hints.flat_map(|hints| &hints.zones) {
        *counts.entry(Arc::clone(zone)).or_default() += 1;
    }
    counts
}

fn event_name(event: &HintEvent) -> &'static str {
    match event {
        HintEvent::Enabled { .. } => "Enabled",
        HintEvent::Disabled { problem, .. } => match problem {
            HintProblem::Nodes => "Nodes",
            HintProblem::TooFewEndpoints { .. } => "TooFewEndpoints",
            HintProblem::Overload { .. } => "Overload",
            HintProblem::EndpointWithoutZone => "EndpointWithoutZone",
            HintProblem::NoLongerRequested => "NoLongerRequested",
        },
    }
}

fn hint_mode(word: &str) -> HintMode {
    match word {
        "Auto" => HintMode::Auto,
        "SameZone" => HintMode::SameZone,
        "SameNode" => HintMode::SameNode,
        "Nothing" => HintMode::Nothing,
        other => panic!("unknown mode {other}"),
    }
}
