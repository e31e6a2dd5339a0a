//! Sums ready Nodes and their CPU by label value, for the labels that caps count by.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::model::Node;
use crate::policy::{LevelKey, Policy, ZONE};

/// More CPU than a Node can have, so that sums over all Nodes stay exact.
const MAX_CPU_MILLI: u64 = 1 << 40;

/// Nodes by name.
type Nodes = FxHashMap<Arc<str>, Node>;

/// Number and CPU of some Nodes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct NodeTotals {
    pub(crate) nodes: u64,
    pub(crate) cpu_milli: u64,
}

impl NodeTotals {
    /// The totals of a single Node.
    pub(crate) fn of(node: &Node) -> Self {
        Self {
            nodes: 1,
            cpu_milli: node.cpu_milli.min(MAX_CPU_MILLI),
        }
    }

    const fn add(&mut self, other: Self) {
        self.nodes += other.nodes;
        self.cpu_milli += other.cpu_milli;
    }

    const fn subtract(&mut self, other: Self) {
        self.nodes -= other.nodes;
        self.cpu_milli -= other.cpu_milli;
    }
}

/// Ready Nodes by the value of one label; an empty value counts as absent.
#[derive(Debug, Default)]
pub(crate) struct LabelTally {
    pub(crate) all: NodeTotals,
    pub(crate) without: NodeTotals,
    values: FxHashMap<Arc<str>, NodeTotals>,
}

impl LabelTally {
    fn enter(&mut self, node: &Node, key: &str) {
        if node.ready {
            let part = NodeTotals::of(node);
            self.all.add(part);
            match value(node, key) {
                Some(value) => self.values.entry(value.clone()).or_default().add(part),
                None => self.without.add(part),
            }
        }
    }

    fn leave(&mut self, node: &Node, key: &str) {
        if !node.ready {
            return;
        }
        let part = NodeTotals::of(node);
        self.all.subtract(part);
        let Some(value) = value(node, key) else {
            self.without.subtract(part);
            return;
        };
        if let Some(held) = self.values.get_mut(value) {
            held.subtract(part);
            if held.nodes == 0 {
                self.values.remove(value);
            }
        }
    }

    /// The totals of the Nodes with this value.
    pub(crate) fn of(&self, value: &str) -> NodeTotals {
        self.values.get(value).copied().unwrap_or_default()
    }
}

fn value<'a>(node: &'a Node, key: &str) -> Option<&'a Arc<str>> {
    node.labels.get(key).filter(|value| !value.is_empty())
}

/// The totals for every label that a policy with a cap has used so far.
#[derive(Debug, Default)]
pub(super) struct LabelTallies(FxHashMap<Arc<str>, LabelTally>);

impl LabelTallies {
    /// Counts by the labels that `policy` needs.
    pub(super) fn track(&mut self, policy: &Policy, nodes: &Nodes) {
        if policy.max_overload.is_none() {
            return;
        }
        let labels = policy.levels.iter().filter_map(|level| match &level.key {
            LevelKey::Label(label) => Some(&**label),
            LevelKey::Node | LevelKey::Any => None,
        });
        for key in labels.chain([ZONE]) {
            if !self.0.contains_key(key) {
                let mut tally = LabelTally::default();
                for node in nodes.values() {
                    tally.enter(node, key);
                }
                self.0.insert(key.into(), tally);
            }
        }
    }

    pub(super) fn enter(&mut self, node: &Node) {
        for (key, tally) in &mut self.0 {
            tally.enter(node, key);
        }
    }

    pub(super) fn leave(&mut self, node: &Node) {
        for (key, tally) in &mut self.0 {
            tally.leave(node, key);
        }
    }

    pub(super) fn of(&self, key: &str) -> Option<&LabelTally> {
        self.0.get(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::{Level, Mode, PolicySource};

    fn node(name: &str, zone: &str, ready: bool) -> Node {
        let zone: (Arc<str>, Arc<str>) = (ZONE.into(), zone.into());
        Node {
            labels: [zone].into_iter().collect(),
            cpu_milli: u64::MAX,
            ready,
            ..Node::new(name)
        }
    }

    #[test]
    fn totals_after_changes_equal_totals_from_scratch() {
        let levels = vec![Level::new(LevelKey::Node, 1)];
        let policy = Policy::new(PolicySource::Annotation, Mode::Balanced, levels);
        let all = [
            node("a", "x", true),
            node("b", "x", false),
            node("c", "", true),
        ];
        let (mut early, mut late) = (LabelTallies::default(), LabelTallies::default());
        early.track(&policy, &Nodes::default());
        let gone = node("d", "y", true);
        early.enter(&gone);
        for node in &all {
            early.enter(node);
        }
        early.leave(&gone);
        let named = all.map(|node| (node.name.clone(), node));
        let nodes: Nodes = named.into_iter().collect();
        late.track(&policy, &nodes);
        let counts = |tallies: &LabelTallies| {
            let tally = tallies.of(ZONE).unwrap();
            [tally.all, tally.without, tally.of("x"), tally.of("y")].map(|part| part.nodes)
        };
        assert_eq!(counts(&early), [2, 1, 1, 0]);
        assert_eq!(counts(&early), counts(&late));
        assert_eq!(early.of(ZONE).unwrap().all.cpu_milli, 2 * MAX_CPU_MILLI);
    }
}
