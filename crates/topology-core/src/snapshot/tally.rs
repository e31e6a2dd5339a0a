//! Sums ready Nodes and their CPU by label value, for the labels that caps count by.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::model::Node;
use crate::policy::{Policy, ZONE};

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

/// The totals for each label that policies with a cap use.
#[derive(Debug, Default)]
pub(super) struct LabelTallies(FxHashMap<Arc<str>, UsedTally>);

#[derive(Debug)]
struct UsedTally {
    tally: LabelTally,
    /// How often policies use the label.
    uses: usize,
}

impl LabelTallies {
    /// Counts by the labels that the policy `new` needs, and drops those that only `old` needed.
    pub(super) fn replace(&mut self, old: Option<&Policy>, new: Option<&Policy>, nodes: &Nodes) {
        for key in new.into_iter().flat_map(counted_labels) {
            match self.0.get_mut(key) {
                Some(used) => used.uses += 1,
                None => drop(self.0.insert(key.into(), UsedTally::of(nodes, key))),
            }
        }
        for key in old.into_iter().flat_map(counted_labels) {
            if let Some(used) = self.0.get_mut(key) {
                used.uses -= 1;
                if used.uses == 0 {
                    self.0.remove(key);
                }
            }
        }
    }

    pub(super) fn enter(&mut self, node: &Node) {
        for (key, used) in &mut self.0 {
            used.tally.enter(node, key);
        }
    }

    pub(super) fn leave(&mut self, node: &Node) {
        for (key, used) in &mut self.0 {
            used.tally.leave(node, key);
        }
    }

    pub(super) fn of(&self, key: &str) -> Option<&LabelTally> {
        self.0.get(key).map(|used| &used.tally)
    }
}

impl UsedTally {
    /// The totals of all Nodes, for the first use.
    fn of(nodes: &Nodes, key: &str) -> Self {
        let mut tally = LabelTally::default();
        for node in nodes.values() {
            tally.enter(node, key);
        }
        Self { tally, uses: 1 }
    }
}

/// The labels by which the cap of a policy counts; none without a cap.
fn counted_labels(policy: &Policy) -> impl Iterator<Item = &str> {
    let levels = policy.levels.iter();
    let labels = levels.filter_map(|level| level.key.label());
    let labels = labels.map(|label| &**label).chain([ZONE]);
    labels.filter(move |_| policy.max_overload.is_some())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Enforcement, ObjectName, Selector, Service, TopologyPolicy};
    use crate::policy::{Level, LevelKey, Mode, PolicySource};
    use crate::snapshot::Snapshot;

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
        early.replace(None, Some(&policy), &Nodes::default());
        let gone = node("d", "y", true);
        early.enter(&gone);
        for node in &all {
            early.enter(node);
        }
        early.leave(&gone);
        let named = all.map(|node| (node.name.clone(), node));
        let nodes: Nodes = named.into_iter().collect();
        late.replace(None, Some(&policy), &nodes);
        let counts = |tallies: &LabelTallies| {
            let tally = tallies.of(ZONE).unwrap();
            [tally.all, tally.without, tally.of("x"), tally.of("y")].map(|part| part.nodes)
        };
        assert_eq!(counts(&early), [2, 1, 1, 0]);
        assert_eq!(counts(&early), counts(&late));
        assert_eq!(early.of(ZONE).unwrap().all.cpu_milli, 2 * MAX_CPU_MILLI);
    }

    /// A policy with a cap and these levels.
    fn by(labels: [&str; 2]) -> Policy {
        let keys = labels.map(|label| LevelKey::Label(label.into()));
        let levels = keys.map(|key| Level::new(key, 1)).into();
        Policy::new(PolicySource::Annotation, Mode::Balanced, levels)
    }

    fn counted(tallies: &LabelTallies) -> Vec<String> {
        let mut keys: Vec<String> = tallies.0.keys().map(ToString::to_string).collect();
        keys.sort();
        keys
    }

    #[test]
    fn only_labels_in_use_are_counted() {
        let nodes = [("a".into(), node("a", "x", true))].into_iter().collect();
        let mut tallies = LabelTallies::default();
        let (other, mut last) = (by(["rack", "rack"]), by(["row", "rack"]));
        tallies.replace(None, Some(&other), &nodes);
        tallies.replace(None, Some(&last), &nodes);
        for number in 0..100 {
            let next = by([&format!("new-{number}"), "row"]);
            tallies.replace(Some(&last), Some(&next), &nodes);
            last = next;
        }
        assert_eq!(counted(&tallies), ["new-99", "rack", "row", ZONE]);
        assert_eq!(tallies.of(ZONE).unwrap().all.nodes, 1);
        tallies.replace(Some(&last), None, &nodes);
        assert_eq!(counted(&tallies), ["rack", ZONE]);
        let uncapped = Policy {
            max_overload: None,
            ..other.clone()
        };
        tallies.replace(Some(&other), Some(&uncapped), &nodes);
        assert_eq!(counted(&tallies), [""; 0]);
    }

    #[test]
    fn a_snapshot_counts_by_the_policies_that_it_has() {
        let mut snapshot = Snapshot::default();
        let name = ObjectName::new("shop", "cart");
        let service = |label| Service {
            policy: Some(by([label, ZONE]).into()),
            ..Service::new(name.clone(), Vec::new(), Vec::new())
        };
        let object = |label| TopologyPolicy {
            namespace: None,
            name: "all".into(),
            created: None,
            generation: 1,
            priority: 0,
            enforcement: Enforcement::Default,
            namespace_selector: Selector::default(),
            service_selector: Selector::default(),
            node_selector: Selector::default(),
            port_names: Vec::new(),
            policy: by([label, ZONE]),
            owner_limits: None,
        };
        snapshot.set_service(service("rack"));
        snapshot.set_service(service("row"));
        snapshot.set_policy(object("room"));
        snapshot.set_policy(object("hall"));
        assert_eq!(counted(&snapshot.tallies), ["hall", "row", ZONE]);
        snapshot.remove_service(&name);
        assert_eq!(counted(&snapshot.tallies), ["hall", ZONE]);
        snapshot.remove_policy(None, "all");
        assert_eq!(counted(&snapshot.tallies), [""; 0]);
    }
}
