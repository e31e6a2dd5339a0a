//! Records changes; [`super::dirty`] computes their effect.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use crate::model::{Drain, Node, ObjectName};

/// What must be resolved again.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Dirty {
    /// Services whose virtual servers may have changed, including removed Services.
    pub services: BTreeSet<ObjectName>,
    /// Whether the Service ranges, or the addresses or the pod ranges of this node changed.
    pub routes: bool,
}

impl Dirty {
    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.services.is_empty() && !self.routes
    }
}

/// What changed, for a caller that resolves for any node.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Changes {
    /// Services that changed, with their slices and policies, including removed Services.
    pub services: BTreeSet<ObjectName>,
    /// Whether Nodes, drains, the Service ranges or the API server's endpoints changed, which may affect every Service.
    pub nodes: bool,
}

/// Recorded changes. Their effect is computed on demand.
#[derive(Debug, Default)]
pub(super) struct Marks {
    pub(super) services: BTreeSet<ObjectName>,
    pub(super) nodes: BTreeMap<Arc<str>, NodeChange>,
    /// Drains that were added or removed, and both versions of changed ones.
    pub(super) drains: Vec<Drain>,
    /// Labels for which the first Node was added or the last one removed, or that were loaded for the Nodes.
    pub(super) levels: BTreeSet<Arc<str>>,
    /// Whether the first Node was added or the last one removed, which affects every label.
    pub(super) any_level: bool,
    /// The addresses of the API server's endpoints before and after a change of them.
    pub(super) api_servers: BTreeSet<IpAddr>,
    /// Whether the Service ranges changed, and with them which Node addresses count.
    pub(super) ranges: bool,
}

/// The change of a Node.
#[derive(Debug, Default)]
pub(super) struct NodeChange {
    /// Labels that were added, removed or changed.
    pub(super) labels: BTreeSet<Arc<str>>,
    /// Addresses that were added or removed.
    pub(super) addresses: BTreeSet<IpAddr>,
    /// Whether `spec.podCIDRs` changed.
    pub(super) pod_ranges: bool,
    /// Whether the Node was added or removed.
    pub(super) existence: bool,
    /// Whether its demand changed: it was added or removed, its readiness or its CPU changed.
    pub(super) demand: bool,
}

impl NodeChange {
    /// Whether a decision can depend on what changed. Demand counts only if a policy has a cap.
    pub(super) fn matters(&self, has_cap: bool) -> bool {
        let is_located = self.existence || self.pod_ranges;
        is_located
            || !self.labels.is_empty()
            || !self.addresses.is_empty()
            || (self.demand && has_cap)
    }
}

impl Marks {
    pub(super) fn service(&mut self, name: &ObjectName) {
        self.services.insert(name.clone());
    }

    pub(super) fn services(&mut self, names: Vec<ObjectName>) {
        self.services.extend(names);
    }

    pub(super) fn drain(&mut self, drain: Drain) {
        self.drains.push(drain);
    }

    pub(super) fn ranges(&mut self) {
        self.ranges = true;
    }

    pub(super) fn node(&mut self, old: Option<&Node>, new: Option<&Node>) {
        let Some(name) = new.or(old).map(|node| node.name.clone()) else {
            return;
        };
        let change = self.nodes.entry(name).or_default();
        change.existence |= old.is_none() || new.is_none();
        let pod_ranges =
            |node: Option<&Node>| node.map_or(Vec::new(), |node| node.pod_cidrs.clone());
        change.pod_ranges |= pod_ranges(old) != pod_ranges(new);
        let demand = |node: Option<&Node>| node.map(|node| (node.ready, node.cpu_milli));
        change.demand |= demand(old) != demand(new);
        change.labels.extend(
            difference(&labels(old), &labels(new))
                .into_iter()
                .map(|(key, _)| key),
        );
        change
            .addresses
            .extend(difference(&addresses(old), &addresses(new)));
    }

    /// The changed labels and the demand of all Nodes, as if they were one Node's.
    pub(super) fn nodes_together(&self) -> NodeChange {
        let labels = self.nodes.values().flat_map(|change| &change.labels);
        NodeChange {
            labels: labels.cloned().collect(),
            demand: self.nodes.values().any(|change| change.demand),
            ..NodeChange::default()
        }
    }

    /// Marks labels for which the first Node was added or the last one removed, or that were loaded for the Nodes.
    pub(super) fn levels(&mut self, labels: Vec<Arc<str>>, all: bool) {
        self.levels.extend(labels);
        self.any_level |= all;
    }
}

fn labels(node: Option<&Node>) -> BTreeSet<(Arc<str>, Arc<str>)> {
    let labels = node.into_iter().flat_map(|node| node.labels.iter());
    labels
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}

fn addresses(node: Option<&Node>) -> BTreeSet<IpAddr> {
    node.into_iter()
        .flat_map(|node| node.addresses.iter().copied())
        .collect()
}

fn difference<T: Ord + Clone>(old: &BTreeSet<T>, new: &BTreeSet<T>) -> Vec<T> {
    old.symmetric_difference(new).cloned().collect()
}
