//! What a change touches.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use super::{Entry, Snapshot};
use crate::model::{CAPACITY_LABEL, Endpoint, Node, ObjectName, Service};
use crate::policy::{LevelKey, ZONE};

/// What has to be resolved again.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Dirty {
    /// Services whose virtual servers may differ now; some may be gone.
    pub services: BTreeSet<ObjectName>,
    /// Whether the set of virtual addresses, the Service ranges or this node's addresses changed.
    pub routes: bool,
}

impl Dirty {
    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.services.is_empty() && !self.routes
    }
}

/// Changes as they are recorded; what they touch is worked out when somebody asks.
#[derive(Debug, Default)]
pub(super) struct Marks {
    services: BTreeSet<ObjectName>,
    nodes: BTreeMap<Arc<str>, NodeChange>,
    routes: bool,
    everything: bool,
}

/// What changed about one Node.
#[derive(Debug, Default)]
struct NodeChange {
    /// Labels whose value changed, came or went.
    labels: BTreeSet<Arc<str>>,
    /// Addresses that came or went.
    addresses: BTreeSet<IpAddr>,
    /// Whether the Node itself came or went.
    existence: bool,
}

impl Marks {
    pub(super) fn service(&mut self, name: &ObjectName) {
        self.services.insert(name.clone());
    }

    pub(super) fn services(&mut self, names: Vec<ObjectName>) {
        self.services.extend(names);
    }

    /// Marks every Service.
    pub(super) fn everything(&mut self) {
        self.everything = true;
    }

    pub(super) fn routes(&mut self) {
        self.routes = true;
    }

    /// Marks the routes if the Service's addresses differ.
    pub(super) fn addresses(&mut self, old: Option<&Service>, new: Option<&Service>) {
        let addresses = |service: &Service| service.cluster_ips.clone();
        self.routes |= old.map(addresses) != new.map(addresses);
    }

    pub(super) fn node(&mut self, old: Option<&Node>, new: Option<&Node>) {
        let Some(name) = new.or(old).map(|node| node.name.clone()) else {
            return;
        };
        let change = self.nodes.entry(name).or_default();
        change.existence |= old.is_none() || new.is_none();
        change.labels.extend(
            difference(&labels(old), &labels(new))
                .into_iter()
                .map(|(key, _)| key),
        );
        change
            .addresses
            .extend(difference(&addresses(old), &addresses(new)));
    }

    /// What the marks touch on the node `me`.
    pub(super) fn dirty(self, snapshot: &Snapshot, me: &str) -> Dirty {
        let mut services = self.services;
        let mine = self.nodes.get(me);
        let routes = self.routes || mine.is_some_and(|change| !change.addresses.is_empty());
        if self.everything {
            services.extend(snapshot.services().map(|service| service.name.clone()));
        } else if !self.nodes.is_empty() {
            let touched = |(_, entry): &(&ObjectName, &Entry)| touches(&self.nodes, mine, entry);
            let touched = snapshot.services.iter().filter(touched);
            services.extend(touched.map(|(name, _)| name.clone()));
        }
        Dirty { services, routes }
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

/// Whether a change of `nodes` (and of this node, `mine`) can alter what `entry` resolves to.
fn touches(
    nodes: &BTreeMap<Arc<str>, NodeChange>,
    mine: Option<&NodeChange>,
    entry: &Entry,
) -> bool {
    let Some(service) = &entry.service else {
        return false;
    };
    let holds_address = nodes.values().any(|change| holds_address(change, service));
    holds_address
        || mine.is_some_and(|change| moves_me(change, service, entry))
        || moves_endpoint(nodes, service, entry)
}

fn holds_address(change: &NodeChange, service: &Service) -> bool {
    service
        .cluster_ips
        .iter()
        .any(|address| change.addresses.contains(address))
}

/// This node stands somewhere else now.
fn moves_me(change: &NodeChange, service: &Service, entry: &Entry) -> bool {
    if service.policy.is_some() {
        return change.existence || uses_label(change, service);
    }
    let hinted = |endpoint: &Endpoint| endpoint.hints.is_some();
    change.labels.contains(ZONE)
        && entry
            .slices
            .iter()
            .any(|slice| slice.endpoints.iter().any(hinted))
}

/// The node of one of its endpoints stands somewhere else now.
fn moves_endpoint(
    nodes: &BTreeMap<Arc<str>, NodeChange>,
    service: &Service,
    entry: &Entry,
) -> bool {
    let mut endpoints = entry.slices.iter().flat_map(|slice| &slice.endpoints);
    service.policy.is_some()
        && endpoints.any(|endpoint| {
            let change = endpoint.node.as_ref().and_then(|node| nodes.get(node));
            change.is_some_and(|change| uses_label(change, service))
        })
}

fn uses_label(change: &NodeChange, service: &Service) -> bool {
    let Some(policy) = &service.policy else {
        return false;
    };
    let mut keys = policy.levels.iter().map(|level| &level.key);
    keys.any(|key| match key {
        LevelKey::Label(label) => change.labels.contains(label),
        LevelKey::Node | LevelKey::Any => false,
    }) || (policy.uses_capacity() && change.labels.contains(CAPACITY_LABEL))
}
