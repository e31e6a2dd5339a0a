//! Computes which Services a change affects.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use super::deciders::{AffectedPolicies, Deciders};
use super::marks::{Changes, Dirty, Marks, NodeChange};
use super::{ServiceAndSlices, Snapshot, api_servers, drained};
use crate::model::{Endpoint, Service};
use crate::policy::ZONE;

impl Snapshot {
    /// Takes the changes since the last call that affect the node `me`.
    pub fn take_dirty(&mut self, me: &str) -> Dirty {
        let marks = self.take_marks();
        marks.dirty(self, me)
    }

    /// Takes the changes since the last call, of either method, for all nodes.
    pub fn take_changes(&mut self) -> Changes {
        let marks = self.take_marks();
        let is_wide = marks.any_level || !marks.levels.is_empty();
        Changes {
            services: marks.services,
            nodes: is_wide || !marks.nodes.is_empty() || !marks.drains.is_empty(),
        }
    }

    fn take_marks(&mut self) -> Marks {
        self.marks.services(self.claims.take_reassigned());
        std::mem::take(&mut self.marks)
    }
}

impl Marks {
    /// The effect of the changes on the node `me`.
    fn dirty(self, snapshot: &Snapshot, me: &str) -> Dirty {
        let mine = self.nodes.get(me);
        let moves = |change: &NodeChange| change.pod_ranges || !change.addresses.is_empty();
        let routes = self.ranges || mine.is_some_and(moves);
        let mut services = BTreeSet::new();
        let is_wide = !self.nodes.is_empty() || !self.drains.is_empty() || self.ranges;
        if is_wide || !self.api_servers.is_empty() {
            let policies = AffectedPolicies::of(snapshot, &self, me);
            let all = snapshot.services.iter();
            let touched = all.filter(|(_, entry)| self.affects(snapshot, me, &policies, entry));
            services.extend(touched.map(|(name, _)| name.clone()));
        }
        services.extend(self.services);
        Dirty { services, routes }
    }

    /// Whether a change of Nodes, drains or the API server's endpoints can change the result for `entry` on the node `me`.
    fn affects<'a>(
        &'a self,
        snapshot: &'a Snapshot,
        me: &str,
        affected: &AffectedPolicies<'a>,
        entry: &'a ServiceAndSlices,
    ) -> bool {
        let Some(service) = &entry.service else {
            return false;
        };
        let policies = Deciders::of(snapshot, affected, &self.drains, service);
        let drained = |drain| drained::touches(drain, snapshot, me, &policies, entry);
        let mine = self.nodes.get(me);
        let mut nodes = self.nodes.values();
        nodes.any(|change| policies.count_on(change))
            || self.affects_address(snapshot, me, service)
            || mine.is_some_and(|change| moves_this_node(change, &policies, entry))
            || moves_endpoint(&self.nodes, &policies, entry)
            || policies.use_level(&self.levels, self.any_level)
            || self.drains.iter().any(drained)
            || api_servers::affects(&self.api_servers, entry)
    }

    /// Whether a Node has started or stopped to keep an address from the Service on the node `me`. Inside unchanged
    /// Service ranges the addresses of other Nodes do not count.
    fn affects_address(&self, snapshot: &Snapshot, me: &str, service: &Service) -> bool {
        let changed = |address: &IpAddr| {
            let counts = self.ranges || !snapshot.is_in_service_cidr(*address);
            let mut nodes = self.nodes.iter();
            nodes.any(|(name, change)| {
                (counts || **name == *me) && change.addresses.contains(address)
            })
        };
        let claimed =
            |address: &IpAddr| self.ranges && snapshot.node_with_address(*address).is_some();
        let mut addresses = service.frontends.iter().map(|frontend| frontend.address);
        addresses.any(|address| changed(&address) || claimed(&address))
    }
}

/// Whether the location of this node changed.
fn moves_this_node(change: &NodeChange, policies: &Deciders<'_>, entry: &ServiceAndSlices) -> bool {
    let hinted = |endpoint: &Endpoint| endpoint.hints.is_some();
    let endpoints = || entry.slices.iter().flat_map(|slice| &slice.endpoints);
    (!policies.is_empty() && change.existence)
        || policies.use_label_of(change)
        || policies.select_by(change)
        || (change.labels.contains(ZONE) && endpoints().any(hinted))
}

/// Whether the location of the node of an endpoint changed.
fn moves_endpoint(
    nodes: &BTreeMap<Arc<str>, NodeChange>,
    policies: &Deciders<'_>,
    entry: &ServiceAndSlices,
) -> bool {
    let mut endpoints = entry.slices.iter().flat_map(|slice| &slice.endpoints);
    !policies.is_empty()
        && endpoints.any(|endpoint| {
            let change = endpoint.node.as_ref().and_then(|node| nodes.get(node));
            change.is_some_and(|change| policies.use_label_of(change))
        })
}
