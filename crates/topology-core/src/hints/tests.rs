//! Nodes, slices and words as the tests of hints write them.

mod rules;
mod tables;

use std::collections::BTreeMap;
use std::sync::Arc;

use super::allocation::{Allocation, Counts, Moves, Quota};
use super::{Event, Member, Slice, Slices, Trouble, Wanted, Zones, auto, reconcile, write};
use crate::model::{Endpoint, EndpointSlice, Family, Hints, Node, ObjectName};
use crate::ratio::Ratio;

fn node(name: usize, zone: &str, cpu_milli: u64) -> Node {
    let labels = [(Arc::from("topology.kubernetes.io/zone"), Arc::from(zone))];
    Node {
        name: format!("n{name}").into(),
        labels: labels.into_iter().collect(),
        addresses: Vec::new(),
        cpu_milli,
        ready: true,
        leaving: false,
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

/// An endpoint as the file's legend says.
fn member(text: &str) -> Member {
    let (place, hints) = match text.split_once('=') {
        Some((place, zones)) => (place, Some(zones)),
        None => (text, None),
    };
    let (zone, condition) = place.split_at(place.len() - 1);
    Member {
        node: (!zone.is_empty()).then(|| Arc::from(format!("node-{zone}"))),
        zone: (!zone.is_empty()).then(|| zone.into()),
        ready: match condition {
            "+" => Some(true),
            "-" => Some(false),
            "?" => None,
            other => panic!("{other} is no condition"),
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

fn slice(members: &[String]) -> Slice {
    Slice {
        name: "x".into(),
        members: members.iter().map(|text| member(text)).collect(),
    }
}

fn slices(all: &[Vec<String>]) -> Vec<Slice> {
    all.iter().map(|members| slice(members)).collect()
}

fn counts(slices: &[Slice]) -> Counts {
    let mut counts = Counts::new();
    let hints = slices
        .iter()
        .flat_map(|slice| &slice.members)
        .filter_map(|member| member.hints.as_ref());
    for zone in hints.flat_map(|hints| &hints.zones) {
        *counts.entry(Arc::clone(zone)).or_default() += 1;
    }
    counts
}

fn word(event: &Event) -> &'static str {
    match event {
        Event::Enabled { .. } => "Enabled",
        Event::Disabled { trouble, .. } => match trouble {
            Trouble::Nodes => "Nodes",
            Trouble::TooFewEndpoints { .. } => "TooFewEndpoints",
            Trouble::Overload { .. } => "Overload",
            Trouble::EndpointWithoutZone => "EndpointWithoutZone",
            Trouble::NoLongerAsked => "NoLongerAsked",
        },
    }
}

fn wanted(word: &str) -> Wanted {
    match word {
        "Auto" => Wanted::Auto,
        "SameZone" => Wanted::SameZone,
        "SameNode" => Wanted::SameNode,
        "Nothing" => Wanted::Nothing,
        other => panic!("{other} is nothing one can want"),
    }
}
