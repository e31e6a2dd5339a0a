//! The distribution of a cluster's CPU over its zones.

use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::sync::Arc;

use crate::model::Node;
use crate::policy::ZONE;
use crate::ratio::Ratio;

/// Nodes with one of these labels do not count.
const CONTROL_PLANE: [&str; 2] = [
    "node-role.kubernetes.io/control-plane",
    "node-role.kubernetes.io/master",
];

/// The allocatable CPU of each zone, as the measure of its demand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Zones {
    cpu: BTreeMap<Arc<str>, u64>,
    total: u64,
}

impl Zones {
    /// The zones of the `nodes` that are ready and not part of the control plane. `None` if one of them has no zone or
    /// no CPU, or all are in one zone.
    pub fn of(nodes: impl IntoIterator<Item: Borrow<Node>>) -> Option<Self> {
        let mut cpu: BTreeMap<Arc<str>, u64> = BTreeMap::new();
        for node in nodes {
            let node = node.borrow();
            if !counts(node) {
                continue;
            }
            let zone = node.labels.get(ZONE).filter(|zone| !zone.is_empty())?;
            if node.cpu_milli == 0 {
                return None;
            }
            let sum = cpu.entry(Arc::clone(zone)).or_default();
            *sum = sum.saturating_add(node.cpu_milli);
        }
        let total = cpu
            .values()
            .fold(0_u64, |sum, cpu| sum.saturating_add(*cpu));
        (cpu.len() >= 2).then_some(Self { cpu, total })
    }

    /// The zones and their shares, by name.
    pub(super) fn shares(&self) -> impl Iterator<Item = (&Arc<str>, Ratio)> {
        self.cpu
            .iter()
            .map(|(zone, cpu)| (zone, Ratio::new(*cpu, self.total)))
    }

    /// The number of zones, at least two.
    pub(super) fn count(&self) -> usize {
        self.cpu.len()
    }
}

fn counts(node: &Node) -> bool {
    let label = |key: &&str| node.labels.get(key).is_some();
    node.ready && !CONTROL_PLANE.iter().any(label)
}
