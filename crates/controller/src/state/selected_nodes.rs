//! Counts the Nodes that the selectors of policies match, once for each selector.

use std::collections::{BTreeMap, HashMap};

use topology_core::model::Selector;

use super::nodes::NodeInfo;
use super::report::Reports;

/// Node counts by selector, kept until a Node or the set of reporting Nodes changes.
#[derive(Debug, Default)]
pub(super) struct SelectedNodes(HashMap<Selector, NodeCount>);

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct NodeCount {
    pub(super) all: usize,
    pub(super) reporting: usize,
}

impl SelectedNodes {
    pub(super) fn forget(&mut self) {
        self.0.clear();
    }

    /// Counts the Nodes of a selector, if there is no count yet.
    pub(super) fn count(
        &mut self,
        nodes: &BTreeMap<String, NodeInfo>,
        reports: &Reports,
        selector: &Selector,
    ) {
        if !self.0.contains_key(selector) {
            let counted = NodeCount::of(nodes, reports, selector);
            self.0.insert(selector.clone(), counted);
        }
    }

    pub(super) fn of(&self, selector: &Selector) -> NodeCount {
        self.0.get(selector).copied().unwrap_or_default()
    }
}

impl NodeCount {
    fn of(nodes: &BTreeMap<String, NodeInfo>, reports: &Reports, selector: &Selector) -> Self {
        let mut count = Self::default();
        for (node, info) in nodes {
            if selector.matches(&info.labels) {
                count.all += 1;
                count.reporting += usize::from(reports.has(node));
            }
        }
        count
    }
}
