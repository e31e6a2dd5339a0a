//! What a change touches.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use smallvec::SmallVec;

use super::{ServiceEntry, Snapshot, drained};
use crate::model::{
    CAPACITY_LABEL, Drain, Endpoint, Node, ObjectName, Selector, Service, TopologyPolicy,
};
use crate::policy::{Level, LevelKey, Policy, ZONE};

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
    /// Drains that came or went, and those that changed as they were and as they are.
    drains: Vec<Drain>,
    /// Labels that some Node has now and none had, or the other way round.
    levels: BTreeSet<Arc<str>>,
    /// Whether the first Node came or the last one went, so that this may be so of any label.
    any_level: bool,
    routes: bool,
    /// Whether the Service ranges changed, and with them which claims of Nodes count.
    ranges: bool,
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
    /// Whether it brings more or less demand: it came, went, became ready or not, or its CPU changed.
    demand: bool,
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

    /// Marks the routes if the Service's addresses differ.
    pub(super) fn addresses(&mut self, old: Option<&Service>, new: Option<&Service>) {
        let addresses = |service: &Service| service.frontends.clone();
        self.routes |= old.map(addresses) != new.map(addresses);
    }

    pub(super) fn node(&mut self, old: Option<&Node>, new: Option<&Node>) {
        let Some(name) = new.or(old).map(|node| node.name.clone()) else {
            return;
        };
        let change = self.nodes.entry(name).or_default();
        change.existence |= old.is_none() || new.is_none();
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

    /// Marks labels that some Node has now and none had, or the other way round.
    pub(super) fn levels(&mut self, labels: Vec<Arc<str>>, all: bool) {
        self.levels.extend(labels);
        self.any_level |= all;
    }

    /// What the marks touch on the node `me`.
    pub(super) fn dirty(self, snapshot: &Snapshot, me: &str) -> Dirty {
        let mine = self.nodes.get(me);
        let routes =
            self.routes || self.ranges || mine.is_some_and(|change| !change.addresses.is_empty());
        let mut services = BTreeSet::new();
        if !self.nodes.is_empty() || !self.drains.is_empty() || self.ranges {
            let all = snapshot.services.iter();
            let touched = all.filter(|(_, entry)| self.touch(snapshot, me, entry));
            services.extend(touched.map(|(name, _)| name.clone()));
        }
        services.extend(self.services);
        Dirty { services, routes }
    }

    /// Whether a change of Nodes or drains can alter what `entry` resolves to on the node `me`.
    fn touch(&self, snapshot: &Snapshot, me: &str, entry: &ServiceEntry) -> bool {
        let Some(service) = &entry.service else {
            return false;
        };
        let policies = Deciders::of(snapshot, &self.drains, service);
        let drained = |drain| drained::touches(drain, snapshot, me, &policies, entry);
        let mine = self.nodes.get(me);
        let mut nodes = self.nodes.values();
        nodes.any(|change| policies.count_on(change))
            || self.touch_address(snapshot, me, service)
            || mine.is_some_and(|change| moves_me(change, &policies, entry))
            || moves_endpoint(&self.nodes, &policies, entry)
            || policies.use_level(&self.levels, self.any_level)
            || self.drains.iter().any(drained)
    }

    /// Whether a Node keeps an address from the Service on the node `me` now that did not before, or the other way round.
    /// What other Nodes claim inside the Service ranges never counts, so it touches nothing while the ranges stay.
    fn touch_address(&self, snapshot: &Snapshot, me: &str, service: &Service) -> bool {
        let came_or_went = |address: &IpAddr| {
            let counts = self.ranges || !snapshot.is_in_service_cidr(*address);
            let mut nodes = self.nodes.iter();
            nodes.any(|(name, change)| {
                (counts || **name == *me) && change.addresses.contains(address)
            })
        };
        let claimed = |address: &IpAddr| self.ranges && snapshot.holders.contains_key(address);
        let mut addresses = service.frontends.iter().map(|frontend| frontend.address);
        addresses.any(|address| came_or_went(&address) || claimed(&address))
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

/// This node stands somewhere else now.
fn moves_me(change: &NodeChange, policies: &Deciders<'_>, entry: &ServiceEntry) -> bool {
    let hinted = |endpoint: &Endpoint| endpoint.hints.is_some();
    let endpoints = || entry.slices.iter().flat_map(|slice| &slice.endpoints);
    (!policies.is_empty() && change.existence)
        || policies.use_label_of(change)
        || policies.select_by(change)
        || (change.labels.contains(ZONE) && endpoints().any(hinted))
}

/// The node of one of its endpoints stands somewhere else now.
fn moves_endpoint(
    nodes: &BTreeMap<Arc<str>, NodeChange>,
    policies: &Deciders<'_>,
    entry: &ServiceEntry,
) -> bool {
    let mut endpoints = entry.slices.iter().flat_map(|slice| &slice.endpoints);
    !policies.is_empty()
        && endpoints.any(|endpoint| {
            let change = endpoint.node.as_ref().and_then(|node| nodes.get(node));
            change.is_some_and(|change| policies.use_label_of(change))
        })
}

/// Everything that may decide about a Service, and the drains, which hold for all.
pub(super) struct Deciders<'a> {
    policies: SmallVec<[&'a Policy; 2]>,
    objects: SmallVec<[&'a TopologyPolicy; 2]>,
    snapshot: &'a Snapshot,
    /// Drains that changed; some are not in the snapshot any more.
    changed: &'a [Drain],
}

impl<'a> Deciders<'a> {
    fn of(snapshot: &'a Snapshot, changed: &'a [Drain], service: &'a Service) -> Self {
        let name = service.named_policy.as_ref();
        let named = name.and_then(|name| snapshot.policy(&service.name.namespace, name));
        let objects: SmallVec<[_; 2]> = snapshot.policies_for(service).chain(named).collect();
        let own = service.policy.as_deref();
        Self {
            policies: own
                .into_iter()
                .chain(objects.iter().map(|object| &object.policy))
                .collect(),
            objects,
            snapshot,
            changed,
        }
    }

    fn drains(&self) -> impl Iterator<Item = &Drain> {
        self.snapshot.drains().chain(self.changed)
    }

    fn is_empty(&self) -> bool {
        self.policies.is_empty() && self.drains().next().is_none()
    }

    /// Whether a drain of clients by `key` makes this node leave a level, which is that of its Node for want of another.
    pub(super) fn leave(&self, key: &LevelKey) -> bool {
        let left = |level: &Level| level.key == *key || level.key == LevelKey::Node;
        self.policies
            .iter()
            .any(|policy| policy.levels.iter().any(left))
    }

    /// Whether a policy goes by one of the labels that came or went as a whole, or by any where `all` did.
    fn use_level(&self, labels: &BTreeSet<Arc<str>>, all: bool) -> bool {
        if labels.is_empty() && !all {
            return false;
        }
        let mut keys = self.policies.iter().flat_map(|policy| policy.label_keys());
        keys.any(|key| all || labels.contains(key))
    }

    /// Whether one of the labels that changed places an endpoint or this node.
    fn use_label_of(&self, change: &NodeChange) -> bool {
        let changed = |key: &LevelKey| match key {
            LevelKey::Label(label) => change.labels.contains(label),
            LevelKey::Node | LevelKey::Any => false,
        };
        let uses = |policy: &&Policy| {
            policy.levels.iter().any(|level| changed(&level.key))
                || policy.avoid.iter().any(|avoid| changed(&avoid.key))
                || (policy.uses_capacity() && change.labels.contains(CAPACITY_LABEL))
                || (policy.max_overload.is_some() && change.labels.contains(ZONE))
        };
        self.policies.iter().any(uses) || self.drains().any(|drain| changed(&drain.key))
    }

    /// Whether a policy selects client Nodes by one of the labels that changed.
    fn select_by(&self, change: &NodeChange) -> bool {
        let selectors = self.objects.iter().map(|object| &object.node_selector);
        let mut keys = selectors.flat_map(Selector::keys);
        keys.any(|key| change.labels.contains(key))
    }

    /// Whether a cap estimates the demand by what changed, wherever the Node is.
    fn count_on(&self, change: &NodeChange) -> bool {
        let mut capped = self
            .policies
            .iter()
            .filter(|policy| policy.max_overload.is_some());
        let labels = |policy: &Policy| {
            let mut keys = policy.levels.iter().map(|level| &level.key);
            keys.any(|key| matches!(key, LevelKey::Label(label) if change.labels.contains(label)))
        };
        let zone = change.labels.contains(ZONE);
        capped.any(|policy| change.demand || zone || labels(policy))
    }
}
