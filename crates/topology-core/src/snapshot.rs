//! The cluster state, and what has changed since the last query.

mod api_servers;
mod claims;
mod deciders;
mod dirty;
mod drained;
mod firewall_marks;
mod marks;
mod node_addresses;
mod pod_addresses;
mod pods;
mod policies;
mod presence;
mod tally;

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::model::{
    Drain, EndpointSlice, IpNetwork, Labels, Node, ObjectName, Service, ServicePort, TopologyPolicy,
};
pub(crate) use claims::Claimant;
use claims::FrontendClaims;
pub use claims::FrontendKey;
pub use firewall_marks::{DEFAULT_MARK_MASK, MarkMask, MarkedPort};
use firewall_marks::{FirewallMarks, marked_ports};
use marks::Marks;
pub use marks::{Changes, Dirty};
use node_addresses::NodeAddresses;
use pod_addresses::PodAddresses;
use presence::Presence;
use tally::LabelTallies;
pub(crate) use tally::{LabelTally, NodeTotals};

/// Nodes, Services and EndpointSlices, joined.
///
/// Setting an object again with equal content changes nothing and marks nothing as dirty.
#[derive(Debug, Default)]
pub struct Snapshot {
    nodes: FxHashMap<Arc<str>, Node>,
    node_addresses: NodeAddresses,
    pod_addresses: PodAddresses,
    services: BTreeMap<ObjectName, ServiceAndSlices>,
    /// The Service that each slice was stored under; its label may change.
    slices: FxHashMap<ObjectName, ObjectName>,
    /// The endpoints of the Service `kubernetes`.
    api_servers: BTreeSet<SocketAddr>,
    claims: FrontendClaims,
    firewall_marks: FirewallMarks,
    service_cidrs: Vec<IpNetwork>,
    /// Labels of namespaces.
    namespaces: FxHashMap<Arc<str>, Labels>,
    /// By namespace, cluster-scoped ones first, and name.
    policies: BTreeMap<PolicyId, TopologyPolicy>,
    drains: BTreeMap<Arc<str>, Drain>,
    tallies: LabelTallies,
    presence: Presence,
    /// Labels that a policy uses and that are not loaded for the Nodes yet.
    unread_labels: BTreeSet<Arc<str>>,
    marks: Marks,
}

/// Namespace (`None` for a cluster-scoped policy) and name of a policy.
type PolicyId = (Option<Arc<str>>, Arc<str>);

/// A Service and its slices; either may be known before the other.
#[derive(Debug, Default)]
struct ServiceAndSlices {
    /// Boxed, because the map reserves half as many slots again as there are Services.
    service: Option<Box<Service>>,
    slices: Vec<EndpointSlice>,
}

impl Snapshot {
    /// An empty snapshot whose firewall marks have bits of `mask` only.
    pub fn with_mark_mask(mask: MarkMask) -> Self {
        Self {
            firewall_marks: FirewallMarks::new(mask),
            ..Self::default()
        }
    }

    /// Adds a Node, or replaces the one with the same name.
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
        self.node_addresses.replace(old, Some(&node));
        self.nodes.insert(node.name.clone(), node);
    }

    /// Removes a Node.
    pub fn remove_node(&mut self, name: &str) {
        if let Some(old) = self.nodes.remove(name) {
            self.node_addresses.replace(Some(&old), None);
            self.tallies.leave(&old);
            self.marks.node(Some(&old), None);
            let labels = self.presence.replace(Some(&old), None);
            self.marks.levels(labels, self.nodes.is_empty());
        }
    }

    /// Adds a Service, or replaces the one with the same name.
    pub fn set_service(&mut self, service: Service) {
        let entry = self.services.entry(service.name.clone()).or_default();
        if entry.service.as_deref() == Some(&service) {
            return;
        }
        self.marks.service(&service.name);
        let old = entry.service.as_deref();
        self.claims.replace(old, Some(&service));
        self.firewall_marks.replace(old, Some(&service));
        let policy = old.and_then(|old| old.policy.as_deref());
        self.tallies
            .replace(policy, service.policy.as_deref(), &self.nodes);
        entry.service = Some(Box::new(service));
    }

    /// Removes a Service; its slices stay until they are removed themselves.
    pub fn remove_service(&mut self, name: &ObjectName) {
        let Some(entry) = self.services.get_mut(name) else {
            return;
        };
        let Some(old) = entry.service.take() else {
            return;
        };
        self.marks.service(name);
        self.claims.replace(Some(&old), None);
        self.firewall_marks.replace(Some(&old), None);
        self.tallies
            .replace(old.policy.as_deref(), None, &self.nodes);
        self.drop_if_empty(name);
    }

    /// Adds an EndpointSlice, or replaces the one with the same name.
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
        // Slices without a Service here (headless Services have many) change nothing.
        if entry.service.is_some() {
            self.marks.service(&owner);
        }
        self.update_api_servers(&owner);
    }

    /// Removes an EndpointSlice.
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
        self.update_api_servers(&owner);
        self.drop_if_empty(&owner);
    }

    /// Replaces the ranges of cluster IPs.
    pub fn set_service_cidrs(&mut self, mut cidrs: Vec<IpNetwork>) {
        cidrs.sort_unstable();
        cidrs.dedup();
        if cidrs != self.service_cidrs {
            self.service_cidrs = cidrs;
            self.marks.ranges();
        }
    }

    /// The Node with this name.
    pub fn node(&self, name: &str) -> Option<&Node> {
        self.nodes.get(name)
    }

    /// All Nodes, in no order.
    pub fn nodes(&self) -> impl Iterator<Item = &Node> {
        self.nodes.values()
    }

    /// The totals of ready Nodes by value of the label `key`; `None` for a label that no cap counts by.
    pub(crate) fn tally(&self, key: &str) -> Option<&LabelTally> {
        self.tallies.of(key)
    }

    /// Replaces the set of labels that a policy uses and that are not loaded for the Nodes yet.
    pub fn set_unread_labels(&mut self, labels: BTreeSet<Arc<str>>) {
        let changed = self.unread_labels.symmetric_difference(&labels);
        self.marks.levels(changed.cloned().collect(), false);
        self.unread_labels = labels;
    }

    /// Whether a Node has the label `key`. True for every label while there are no Nodes, and for a label that is not
    /// loaded yet.
    pub fn has_label(&self, key: &str) -> bool {
        self.nodes.is_empty() || self.presence.has(key) || self.unread_labels.contains(key)
    }

    /// The labels that at least one Node has, in no order.
    pub fn node_labels(&self) -> impl Iterator<Item = &str> {
        self.presence.keys().map(|key| &**key)
    }

    /// The Node because of which Services on the node `me` must not use `address`.
    ///
    /// Outside of the Service ranges it is the first Node by name that has the address. Inside them it can only be the
    /// Node `me`: kubelets write their own addresses, and those of another Node must not remove a Service here.
    pub fn conflicting_node(&self, address: IpAddr, me: &str) -> Option<&Node> {
        let names = self.node_addresses.with_address(address);
        let name = if self.is_in_service_cidr(address) {
            names.iter().find(|name| ***name == *me)?
        } else {
            names.first()?
        };
        self.nodes.get(name)
    }

    /// The addresses inside the Service ranges that a Node has, each with the first of these Nodes by name, in no
    /// order.
    pub fn claims_of_nodes(&self) -> impl Iterator<Item = (IpAddr, &Arc<str>)> {
        let claims = self.node_addresses.addresses();
        claims.filter(|(address, _)| self.is_in_service_cidr(*address))
    }

    /// The first Node by name that has `address`.
    pub fn node_with_address(&self, address: IpAddr) -> Option<&Node> {
        let name = self.node_addresses.with_address(address).first()?;
        self.nodes.get(name)
    }

    /// The smallest pod range around `address`, and the Node that has it: of several, the first by name.
    pub fn pod_range_around(&self, address: IpAddr) -> Option<(IpNetwork, &Node)> {
        let (range, name) = self.node_addresses.pod_range_around(address)?;
        Some((range, self.nodes.get(name)?))
    }

    /// Whether `address` is in a range of cluster IPs.
    pub fn is_in_service_cidr(&self, address: IpAddr) -> bool {
        let mut ranges = self.service_cidrs.iter();
        ranges.any(|range| range.contains(address))
    }

    /// The Service with this name.
    pub fn service(&self, name: &ObjectName) -> Option<&Service> {
        self.services.get(name)?.service.as_deref()
    }

    /// All Services, by name.
    pub fn services(&self) -> impl Iterator<Item = &Service> {
        self.services
            .values()
            .filter_map(|entry| entry.service.as_deref())
    }

    /// Whether a Service is in the namespace.
    pub fn has_services_in(&self, namespace: &str) -> bool {
        let first = ObjectName::new(namespace, "");
        let mut entries = self.services.range(first..);
        let mut of_namespace = entries
            .by_ref()
            .take_while(|(name, _)| &*name.namespace == namespace);
        of_namespace.any(|(_, entry)| entry.service.is_some())
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

    /// The ranges of cluster IPs, sorted.
    pub fn service_cidrs(&self) -> &[IpNetwork] {
        &self.service_cidrs
    }

    /// The Service that gets `frontend`: of several claimants the oldest, then the first by name (KP-SY-18).
    pub fn owner_of(&self, frontend: &FrontendKey) -> Option<&ObjectName> {
        self.claims.owner(frontend)
    }

    /// The Service that gets all of `frontends`, which are one on a node, and the one that it claims.
    pub(crate) fn first_owner_of(
        &self,
        frontends: &[FrontendKey],
    ) -> Option<(FrontendKey, &Claimant)> {
        self.claims.first_owner(frontends)
    }

    /// The firewall mark for the outside clients of a port; `None` if the Service needs none, or if all are in use.
    pub fn firewall_mark(&self, service: &Service, port: &ServicePort) -> Option<u32> {
        self.firewall_marks.of(&MarkedPort {
            service: service.name.clone(),
            port_name: Arc::clone(&port.name),
            protocol: port.protocol,
        })
    }

    /// The bits of firewall marks.
    pub const fn mark_mask(&self) -> MarkMask {
        self.firewall_marks.mask()
    }

    /// Gives Service ports the firewall marks of an earlier process. Call it before the first Service is added.
    pub fn restore_firewall_marks(&mut self, marks: impl IntoIterator<Item = (MarkedPort, u32)>) {
        for (port, mark) in marks {
            self.firewall_marks.restore(port, mark);
        }
    }

    /// Releases restored firewall marks of ports that no Service has. Call it after all Services are added.
    pub fn release_unused_firewall_marks(&mut self) {
        let services = self.services();
        let current = services.flat_map(marked_ports).collect();
        self.firewall_marks.retain(&current);
    }

    /// The released firewall marks of a Service that the kernel may still use. They are on disk like those in use. The
    /// next [`Self::free_released_firewall_marks`] checks them.
    pub fn review_released_firewall_marks(&mut self, service: &ObjectName) -> Vec<u32> {
        self.firewall_marks.review_released(service)
    }

    /// Has the next [`Self::free_released_firewall_marks`] check every released firewall mark.
    pub fn review_all_released_firewall_marks(&mut self) {
        self.firewall_marks.review_all_released();
    }

    /// Lets other ports use firewall marks that were released or reviewed since the last call, first of all those that
    /// wait for one, unless the kernel still uses the mark. Returns whether a Service got a mark.
    pub fn free_released_firewall_marks(&mut self, is_used: impl Fn(u32) -> bool) -> bool {
        let served = self.firewall_marks.free_released(is_used);
        self.set_dirty(served)
    }

    /// Never allocates firewall marks of other programs' virtual servers: `foreign` replaces those of the last call. A
    /// port that has one of them gets another. Returns whether a Service got another mark.
    pub fn avoid_firewall_marks(&mut self, foreign: impl Iterator<Item = u32>) -> bool {
        let moved = self.firewall_marks.avoid(foreign);
        self.set_dirty(moved)
    }

    fn set_dirty(&mut self, services: Vec<ObjectName>) -> bool {
        let any = !services.is_empty();
        self.marks.services(services);
        any
    }

    /// One firewall mark of each port, in no order: the one that it has, or one that it had and that the kernel may still
    /// use.
    pub fn firewall_marks(&self) -> impl Iterator<Item = (&MarkedPort, u32)> {
        self.firewall_marks.iter()
    }

    /// The ports whose firewall marks were allocated or freed since the last call, with the marks that they have now.
    pub fn take_changed_firewall_marks(&mut self) -> Vec<(MarkedPort, Option<u32>)> {
        self.firewall_marks.take_changed()
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
