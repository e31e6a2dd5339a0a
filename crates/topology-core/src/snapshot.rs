//! All that is known of the cluster, and what has changed since it was last asked.

mod claims;
mod deciders;
mod dirty;
mod drained;
mod marks;
mod policies;
mod presence;
mod tally;

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::model::{
    Drain, EndpointSlice, IpNetwork, Labels, Node, ObjectName, Service, TopologyPolicy,
};
use claims::FrontendClaims;
pub use claims::FrontendKey;
pub use marks::Dirty;
use marks::Marks;
use presence::Presence;
use tally::LabelTallies;
pub(crate) use tally::{LabelTally, NodeTotals};

/// Nodes, Services and `EndpointSlices`, joined.
///
/// An object that is set again with equal content changes nothing and dirties nothing.
#[derive(Debug, Default)]
pub struct Snapshot {
    nodes: FxHashMap<Arc<str>, Node>,
    /// The Nodes that have each address as one of their own.
    holders: FxHashMap<IpAddr, BTreeSet<Arc<str>>>,
    services: BTreeMap<ObjectName, ServiceEntry>,
    /// Which Service each slice was filed under, since its label may change.
    slices: FxHashMap<ObjectName, ObjectName>,
    claims: FrontendClaims,
    service_cidrs: Vec<IpNetwork>,
    /// Labels of namespaces.
    namespaces: FxHashMap<Arc<str>, Labels>,
    /// By namespace, none first, and name.
    policies: BTreeMap<PolicyId, TopologyPolicy>,
    drains: BTreeMap<Arc<str>, Drain>,
    tallies: LabelTallies,
    presence: Presence,
    /// Labels that something uses and that are not read of the Nodes yet.
    unread_labels: BTreeSet<Arc<str>>,
    marks: Marks,
}

/// Namespace, none for a cluster's, and name of a policy.
type PolicyId = (Option<Arc<str>>, Arc<str>);

/// A Service and its slices; either may be known before the other.
#[derive(Debug, Default)]
struct ServiceEntry {
    /// Boxed, because the map keeps half as many slots again as there are Services.
    service: Option<Box<Service>>,
    slices: Vec<EndpointSlice>,
}

impl Snapshot {
    /// Adds a Node or replaces the one of its name.
    pub fn set_node(&mut self, node: Node) {
        let old = self.nodes.get(&node.name);
        if old == Some(&node) {
            return;
        }
        self.marks.node(old, Some(&node));
        let labels = self.presence.replace(old, Some(&node));
        self.marks.levels(labels, self.nodes.is_empty());
        if let Some(old) = old {
            self.tallies.leave(old);
        }
        self.tallies.enter(&node);
        self.release_addresses(&node.name);
        for address in &node.addresses {
            self.holders
                .entry(*address)
                .or_default()
                .insert(node.name.clone());
        }
        self.nodes.insert(node.name.clone(), node);
    }

    /// Forgets a Node.
    pub fn remove_node(&mut self, name: &str) {
        self.release_addresses(name);
        if let Some(old) = self.nodes.remove(name) {
            self.tallies.leave(&old);
            self.marks.node(Some(&old), None);
            let labels = self.presence.replace(Some(&old), None);
            self.marks.levels(labels, self.nodes.is_empty());
        }
    }

    /// Adds a Service or replaces the one of its name.
    pub fn set_service(&mut self, service: Service) {
        let entry = self.services.entry(service.name.clone()).or_default();
        if entry.service.as_deref() == Some(&service) {
            return;
        }
        self.marks
            .addresses(entry.service.as_deref(), Some(&service));
        self.marks.service(&service.name);
        if let Some(old) = &entry.service {
            self.marks.services(self.claims.withdraw(old));
        }
        self.marks.services(self.claims.enter(&service));
        if let Some(policy) = &service.policy {
            self.tallies.track(policy, &self.nodes);
        }
        entry.service = Some(Box::new(service));
    }

    /// Forgets a Service; its slices stay until they are removed themselves.
    pub fn remove_service(&mut self, name: &ObjectName) {
        let Some(entry) = self.services.get_mut(name) else {
            return;
        };
        let Some(old) = entry.service.take() else {
            return;
        };
        self.marks.addresses(Some(&old), None);
        self.marks.service(name);
        self.marks.services(self.claims.withdraw(&old));
        self.drop_if_empty(name);
    }

    /// Adds an `EndpointSlice` or replaces the one of its name.
    pub fn set_slice(&mut self, slice: EndpointSlice) {
        let owner = ObjectName {
            namespace: slice.name.namespace.clone(),
            name: slice.service.clone(),
        };
        if self
            .slices
            .get(&slice.name)
            .is_some_and(|old| *old != owner)
        {
            self.remove_slice(&slice.name);
        }
        let entry = self.services.entry(owner.clone()).or_default();
        let known = entry
            .slices
            .iter_mut()
            .find(|known| known.name == slice.name);
        match known {
            Some(known) if *known == slice => return,
            Some(known) => *known = slice,
            None => {
                self.slices.insert(slice.name.clone(), owner.clone());
                entry.slices.push(slice);
                entry.slices.sort_by(|a, b| a.name.cmp(&b.name));
                entry.slices.shrink_to_fit();
            }
        }
        // Slices of a Service that is not here (headless ones have many) change nothing.
        if entry.service.is_some() {
            self.marks.service(&owner);
        }
    }

    /// Forgets an `EndpointSlice`.
    pub fn remove_slice(&mut self, name: &ObjectName) {
        let Some(owner) = self.slices.remove(name) else {
            return;
        };
        if let Some(entry) = self.services.get_mut(&owner) {
            entry.slices.retain(|slice| slice.name != *name);
            if entry.service.is_some() {
                self.marks.service(&owner);
            }
        }
        self.drop_if_empty(&owner);
    }

    /// Replaces the ranges that cluster IPs come from.
    pub fn set_service_cidrs(&mut self, mut cidrs: Vec<IpNetwork>) {
        cidrs.sort_unstable();
        cidrs.dedup();
        if cidrs != self.service_cidrs {
            self.service_cidrs = cidrs;
            self.marks.ranges();
        }
    }

    /// The Node of that name.
    pub fn node(&self, name: &str) -> Option<&Node> {
        self.nodes.get(name)
    }

    /// Every Node, in no order.
    pub fn nodes(&self) -> impl Iterator<Item = &Node> {
        self.nodes.values()
    }

    /// The ready Nodes by the value of the label `key`; none for a label that no cap counts by.
    pub(crate) fn tally(&self, key: &str) -> Option<&LabelTally> {
        self.tallies.of(key)
    }

    /// Replaces the labels that something uses and that are not read of the Nodes yet.
    pub fn set_unread_labels(&mut self, labels: BTreeSet<Arc<str>>) {
        let changed = self.unread_labels.symmetric_difference(&labels);
        self.marks.levels(changed.cloned().collect(), false);
        self.unread_labels = labels;
    }

    /// Whether some Node has the label `key`; so it seems of every label while there is no Node, and of one that is not
    /// read yet.
    pub fn has_label(&self, key: &str) -> bool {
        self.nodes.is_empty() || self.presence.has(key) || self.unread_labels.contains(key)
    }

    /// The labels that some Node has, in no order.
    pub fn node_labels(&self) -> impl Iterator<Item = &str> {
        self.presence.keys().map(|key| &**key)
    }

    /// The Node that keeps Services on the node `me` from using `address`.
    ///
    /// Outside of the Service ranges it is the first Node by name that claims the address. Inside of them only the Node
    /// `me` can: kubelets write their own addresses, and the claim of another one may not remove a Service here.
    pub fn node_that_keeps(&self, address: IpAddr, me: &str) -> Option<&Node> {
        let holders = self.holders.get(&address)?;
        let name = if self.is_in_service_cidr(address) {
            holders.get(me)?
        } else {
            holders.first()?
        };
        self.nodes.get(name)
    }

    /// Every address inside the Service ranges that a Node claims as its own, and the first of these Nodes by name; in no
    /// order.
    pub fn claims_of_nodes(&self) -> impl Iterator<Item = (IpAddr, &Arc<str>)> {
        let claims = self.holders.iter();
        claims
            .filter(|(address, _)| self.is_in_service_cidr(**address))
            .filter_map(|(address, holders)| Some((*address, holders.first()?)))
    }

    /// Whether cluster IPs come from a range that `address` is in.
    pub fn is_in_service_cidr(&self, address: IpAddr) -> bool {
        let mut ranges = self.service_cidrs.iter();
        ranges.any(|range| range.contains(address))
    }

    /// The Service of that name.
    pub fn service(&self, name: &ObjectName) -> Option<&Service> {
        self.services.get(name)?.service.as_deref()
    }

    /// Every Service, by name.
    pub fn services(&self) -> impl Iterator<Item = &Service> {
        self.services
            .values()
            .filter_map(|entry| entry.service.as_deref())
    }

    /// The slices of a Service, by name.
    pub fn slices(&self, service: &ObjectName) -> &[EndpointSlice] {
        self.services
            .get(service)
            .map_or(&[], |entry| &entry.slices)
    }

    /// The names of all slices, in no order.
    pub fn slice_names(&self) -> impl Iterator<Item = &ObjectName> {
        self.slices.keys()
    }

    /// The ranges that cluster IPs come from, sorted.
    pub fn service_cidrs(&self) -> &[IpNetwork] {
        &self.service_cidrs
    }

    /// The Service that `frontend` belongs to: of several claimants the oldest, then the first by name (KP-SY-18).
    pub fn owner_of(&self, frontend: &FrontendKey) -> Option<&ObjectName> {
        self.claims.owner(frontend)
    }

    fn release_addresses(&mut self, node: &str) {
        for address in self
            .nodes
            .get(node)
            .into_iter()
            .flat_map(|node| &node.addresses)
        {
            if let Some(holders) = self.holders.get_mut(address) {
                holders.remove(node);
                if holders.is_empty() {
                    self.holders.remove(address);
                }
            }
        }
    }

    fn drop_if_empty(&mut self, name: &ObjectName) {
        if self
            .services
            .get(name)
            .is_some_and(|entry| entry.service.is_none() && entry.slices.is_empty())
        {
            self.services.remove(name);
        }
    }
}
