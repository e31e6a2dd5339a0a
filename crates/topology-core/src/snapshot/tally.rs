//! Ready Nodes and their CPU by the value of a label, counted when somebody asks.

use std::sync::{Arc, PoisonError, RwLock};

use rustc_hash::FxHashMap;

use crate::model::Node;

/// Nodes by name.
type Nodes = FxHashMap<Arc<str>, Node>;

/// Some Nodes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) nodes: u64,
    pub(crate) cpu_milli: u64,
}

impl Part {
    /// One Node alone.
    pub(crate) const fn of(node: &Node) -> Self {
        Self {
            nodes: 1,
            cpu_milli: node.cpu_milli,
        }
    }

    const fn add(&mut self, node: &Node) {
        self.nodes += 1;
        self.cpu_milli = self.cpu_milli.saturating_add(node.cpu_milli);
    }
}

/// The ready Nodes by the value of one label; an empty value counts as none.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) all: Part,
    pub(crate) without: Part,
    values: FxHashMap<Arc<str>, Part>,
}

impl Tally {
    fn new(nodes: &Nodes, key: &str) -> Self {
        let mut tally = Self::default();
        for node in nodes.values().filter(|node| node.ready) {
            tally.all.add(node);
            match node.labels.get(key).filter(|value| !value.is_empty()) {
                Some(value) => tally.values.entry(value.clone()).or_default().add(node),
                None => tally.without.add(node),
            }
        }
        tally
    }

    /// The Nodes with that value.
    pub(crate) fn of(&self, value: &str) -> Part {
        self.values.get(value).copied().unwrap_or_default()
    }
}

/// The tallies that somebody asked for since the last change of a Node.
#[derive(Debug, Default)]
pub(super) struct Tallies(RwLock<FxHashMap<Arc<str>, Arc<Tally>>>);

impl Tallies {
    pub(super) fn forget(&mut self) {
        self.0
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner)
            .clear();
    }

    pub(super) fn of(&self, key: &str, nodes: &Nodes) -> Arc<Tally> {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(tally) = known.get(key) {
            return Arc::clone(tally);
        }
        drop(known);
        let tally = Arc::new(Tally::new(nodes, key));
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        known.insert(key.into(), Arc::clone(&tally));
        tally
    }
}
