//! Counts the Nodes that the selectors of policies match, once for each selector.

use std::collections::btree_map::Values;
use std::collections::{BTreeMap, HashMap, HashSet};

use topology_core::model::{ObjectName, Selector};

use super::collection::Collection;
use super::nodes::NodeInfo;
use super::report::Reports;
use super::validate::ValidatedPolicy;

/// The counts of selectors that no policy has may be as many as those in use, and this many more. Dropping them takes
/// time for each policy, so it does not follow each change.
const MAX_UNUSED: usize = 16;

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

    /// Drops the counts of selectors that none of these policies has, if there are many.
    pub(super) fn drop_unused(
        &mut self,
        policies: Values<'_, (Collection, ObjectName), ValidatedPolicy>,
    ) {
        if self.0.len() > 2 * policies.len() + MAX_UNUSED {
            let in_use: HashSet<&Selector> = policies.map(|policy| &policy.nodes).collect();
            self.0.retain(|selector, _| in_use.contains(selector));
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::state::State;

    /// A tenant could fill the memory.
    #[test]
    fn a_policy_whose_selector_changes_all_the_time_leaves_few_counts() {
        let mut state = State::default();
        let mut select = |name: &str, pool: String| {
            let policy = json!({
                "metadata": { "name": name },
                "spec": {
                    "mode": "Prefer",
                    "levels": [{ "any": true }],
                    "nodeSelector": { "matchLabels": { "pool": pool } },
                },
            });
            state.apply(Collection::ClusterPolicies, policy);
            state.plan(0);
            state.observed.chosen.0.len()
        };
        for number in 0..10 {
            select(&format!("p{number}"), format!("pool-{number}"));
        }
        for version in 0..1000 {
            let counts = select("p0", format!("version-{version}"));
            assert!((10..=20 + MAX_UNUSED).contains(&counts), "{counts} counts");
        }
    }
}
