//! Estimates which part of the cluster's demand comes from a domain.
//!
//! By ready Nodes: `Nodes in the domain / all Nodes`. By allocatable CPU: the same ratio of their CPU. Static: the
//! percentage of the zone over the sum of percentages; for other domains each zone's percentage is divided equally
//! among its ready Nodes. The domain of the level `node` is this Node alone.
//!
//! Example: 12 ready Nodes, 4 of them in the zone: a third.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::work::PortWork;
use crate::model::Node;
use crate::policy::{Demand, LevelKey, ZONE};
use crate::ratio::Ratio;
use crate::snapshot::{NodeTotals, Snapshot};

/// The demand of this node's domain at a level, relative to all demand.
pub(super) fn of_level(work: &PortWork<'_>, demand: &Demand, key: &LevelKey) -> Ratio {
    let snapshot = work.view.snapshot;
    match key {
        LevelKey::Any => Ratio::ONE,
        LevelKey::Node => work
            .own_node()
            .map_or(Ratio::ZERO, |node| of_node(snapshot, demand, node)),
        LevelKey::Label(key) => work
            .own_label(key)
            .map_or(Ratio::ZERO, |value| of_domain(snapshot, demand, key, value)),
    }
}

/// The demand of a zone, relative to all demand; `None` is for Nodes without a zone.
pub(super) fn of_zone(work: &PortWork<'_>, demand: &Demand, zone: Option<&Arc<str>>) -> Ratio {
    let snapshot = work.view.snapshot;
    match (zone, demand) {
        (Some(zone), demand) => of_domain(snapshot, demand, ZONE, zone),
        (None, Demand::Static(_)) => Ratio::ZERO,
        (None, demand) => {
            let tally = snapshot.tally(ZONE);
            tally.map_or(Ratio::ZERO, |tally| {
                measure(demand, tally.without, tally.all)
            })
        }
    }
}

fn of_node(snapshot: &Snapshot, demand: &Demand, node: &Node) -> Ratio {
    if !node.ready {
        return Ratio::ZERO;
    }
    let Some(all) = snapshot.tally(ZONE) else {
        return Ratio::ZERO;
    };
    match demand {
        Demand::NodeCount | Demand::AllocatableCpu => {
            measure(demand, NodeTotals::of(node), all.all)
        }
        Demand::Static(stated) => {
            let zone = node.labels.get(ZONE).filter(|zone| !zone.is_empty());
            let nodes = |zone: &Arc<str>| all.of(zone).nodes;
            zone.map_or(Ratio::ZERO, |zone| {
                stated_share(stated, zone) * Ratio::new(1, nodes(zone))
            })
        }
    }
}

fn of_domain(snapshot: &Snapshot, demand: &Demand, key: &str, value: &Arc<str>) -> Ratio {
    match demand {
        Demand::NodeCount | Demand::AllocatableCpu => {
            let tally = snapshot.tally(key);
            tally.map_or(Ratio::ZERO, |tally| {
                measure(demand, tally.of(value), tally.all)
            })
        }
        Demand::Static(stated) if key == ZONE => stated_share(stated, value),
        Demand::Static(stated) => spread(snapshot, stated, key, value),
    }
}

fn measure(demand: &Demand, part: NodeTotals, all: NodeTotals) -> Ratio {
    match demand {
        Demand::AllocatableCpu => Ratio::new(part.cpu_milli, all.cpu_milli),
        Demand::NodeCount | Demand::Static(_) => Ratio::new(part.nodes, all.nodes),
    }
}

fn stated_share(stated: &[(Arc<str>, u32)], zone: &Arc<str>) -> Ratio {
    let sum = stated.iter().map(|(_, percent)| u64::from(*percent)).sum();
    let percent = stated.iter().filter(|(name, _)| name == zone);
    let percent = percent.map(|(_, percent)| u64::from(*percent)).sum();
    Ratio::new(percent, sum)
}

/// The demand of a domain's Nodes, each with its part of its zone's percentage.
fn spread(snapshot: &Snapshot, stated: &[(Arc<str>, u32)], key: &str, value: &Arc<str>) -> Ratio {
    let mut zones: BTreeMap<&Arc<str>, u64> = BTreeMap::new();
    let inside = |node: &&Node| node.ready && node.labels.get(key) == Some(value);
    for zone in snapshot
        .nodes()
        .filter(inside)
        .filter_map(|node| node.labels.get(ZONE))
    {
        *zones.entry(zone).or_default() += 1;
    }
    let Some(tally) = snapshot.tally(ZONE) else {
        return Ratio::ZERO;
    };
    let part = |(zone, nodes): (&Arc<str>, u64)| {
        stated_share(stated, zone) * Ratio::new(nodes, tally.of(zone).nodes)
    };
    zones.into_iter().map(part).sum()
}
