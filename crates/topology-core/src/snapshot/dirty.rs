//! Works out which Services a change touches.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use super::deciders::Deciders;
use super::marks::{Dirty, Marks, NodeChange};
use super::{ServiceEntry, Snapshot, drained};
use crate::model::{Endpoint, Service};
use crate::policy::ZONE;

impl Snapshot {
    /// What has changed since the last call, as far as it matters on the node `me`.
    pub fn take_dirty(&mut self, me: &str) -> Dirty {
        let marks = std::mem::take(&mut self.marks);
        marks.dirty(self, me)
    }
}

impl Marks {
    /// What the marks touch on the node `me`.
    fn dirty(self, snapshot: &Snapshot, me: &str) -> Dirty {
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
