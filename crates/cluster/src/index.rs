//! Applies events to a [`Snapshot`], and reports when the first full list has ended.

// A new variant must be handled in each `match`, and not fall under `_`.
#![warn(clippy::wildcard_enum_match_arm)]

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use rustc_hash::FxHashSet;
use topology_core::model::{IpNetwork, ObjectName};
use topology_core::snapshot::{MarkMask, Snapshot};

use crate::event::{Batch, Completeness, Event, FileReport};
use crate::object::{Ignored, Kind, Object, ObjectKey};
use crate::warning::Warning;

/// The known state of the cluster.
///
/// Apply [`Batch`]es in the order in which they came. While [`Index::completeness`] is `None`, the
/// snapshot holds only a part of the cluster and must not be programmed.
#[derive(Debug, Default)]
pub struct Index {
    snapshot: Snapshot,
    /// Objects that existed at the last `Begin` and have had no event since.
    unnamed: FxHashSet<ObjectKey>,
    completeness: Option<Completeness>,
    ignored: BTreeMap<ObjectKey, Ignored>,
    reports: BTreeMap<Arc<str>, FileReport>,
    cidrs: BTreeMap<Arc<str>, Vec<IpNetwork>>,
    /// The ranges of Service addresses, used while there is no `ServiceCIDR` object.
    default_cidrs: Vec<IpNetwork>,
}

impl Index {
    /// `service_cidrs` is used while the cluster has no `ServiceCIDR` object.
    pub fn new(service_cidrs: Vec<IpNetwork>) -> Self {
        let mut index = Self {
            default_cidrs: service_cidrs,
            ..Self::default()
        };
        index.publish_cidrs();
        index
    }

    /// Allocates firewall marks within `mask`. Call it before the first event.
    #[must_use]
    pub fn with_mark_mask(mut self, mask: MarkMask) -> Self {
        self.snapshot = Snapshot::with_mark_mask(mask);
        self.publish_cidrs();
        self
    }

    /// Applies a batch and returns the warnings that are new.
    pub fn apply(&mut self, batch: Batch) -> Vec<Warning> {
        let Batch { events, reports } = batch;
        for event in events {
            self.event(event);
        }
        reports
            .into_iter()
            .flat_map(|report| self.report(report))
            .collect()
    }

    /// `None` until a full list has ended.
    pub fn completeness(&self) -> Option<Completeness> {
        self.completeness
    }

    pub fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    /// The snapshot, to take its record of changes.
    pub fn snapshot_mut(&mut self) -> &mut Snapshot {
        &mut self.snapshot
    }

    pub fn into_snapshot(self) -> Snapshot {
        self.snapshot
    }

    /// The valid objects that this program does not use, and why.
    pub fn ignored(&self) -> &BTreeMap<ObjectKey, Ignored> {
        &self.ignored
    }

    /// All current warnings, by file and line.
    pub fn warnings(&self) -> impl Iterator<Item = &Warning> {
        self.reports.values().flat_map(|report| &report.warnings)
    }

    /// The number of objects of kinds that this program does not read, by kind.
    pub fn skipped(&self) -> BTreeMap<Arc<str>, usize> {
        let mut sum = BTreeMap::new();
        for (kind, count) in self.reports.values().flat_map(|report| &report.skipped) {
            *sum.entry(Arc::clone(kind)).or_default() += count;
        }
        sum
    }

    fn event(&mut self, event: Event) {
        match event {
            Event::Begin => self.unnamed = self.existing().collect(),
            Event::Apply(object) => {
                let key = object.key();
                self.unnamed.remove(&key);
                self.ignored.remove(&key);
                self.set(object);
            }
            Event::Ignore(key, reason) => {
                self.unnamed.remove(&key);
                self.remove(&key);
                self.ignored.insert(key, reason);
            }
            Event::Keep(key) => {
                self.unnamed.remove(&key);
            }
            Event::Delete(key) => {
                self.unnamed.remove(&key);
                self.ignored.remove(&key);
                self.remove(&key);
            }
            Event::Unread(labels) => self.snapshot.set_unread_labels(labels),
            // Only the agent's metrics use it.
            Event::Triggered(_) => {}
            Event::Complete(completeness) => self.complete(completeness),
        }
    }

    fn existing(&self) -> impl Iterator<Item = ObjectKey> + '_ {
        let snapshot = &self.snapshot;
        let nodes = snapshot.nodes().map(|node| (Kind::Node, &node.name));
        let cidrs = self.cidrs.keys().map(|name| (Kind::ServiceCidr, name));
        let namespaces = snapshot.namespaces().map(|name| (Kind::Namespace, name));
        let drains = snapshot
            .drains()
            .map(|drain| (Kind::TopologyDrain, &drain.name));
        let pods = snapshot.nodes_with_pods().map(|node| (Kind::PodMap, node));
        let global = nodes
            .chain(cidrs)
            .chain(namespaces)
            .chain(drains)
            .chain(pods);
        let services = snapshot
            .services()
            .map(|service| (Kind::Service, &service.name));
        let slices = snapshot
            .slice_names()
            .map(|name| (Kind::EndpointSlice, name));
        global
            .map(|(kind, name)| ObjectKey::global(kind, name))
            .chain(
                services
                    .chain(slices)
                    .map(|(kind, name)| ObjectKey::namespaced(kind, name)),
            )
            .chain(snapshot.policies().map(ObjectKey::of_policy))
            .chain(self.ignored.keys().cloned())
    }

    /// Ends a list: deletes each object that is not in it, even if an interrupted list had it.
    fn complete(&mut self, completeness: Completeness) {
        for key in std::mem::take(&mut self.unnamed) {
            self.event(Event::Delete(key));
        }
        self.completeness = Some(completeness);
    }

    fn set(&mut self, object: Object) {
        match object {
            Object::Node(node) => self.snapshot.set_node(node),
            Object::Service(mut service) => {
                if let Some(last) = self.snapshot.service(&service.name) {
                    service.keep_last_good(last);
                }
                self.snapshot.set_service(service);
            }
            Object::EndpointSlice(slice) => self.snapshot.set_slice(slice),
            Object::ServiceCidr(cidr) => {
                self.cidrs.insert(cidr.name, cidr.cidrs);
                self.publish_cidrs();
            }
            Object::Policy(policy) => self.snapshot.set_policy(*policy),
            Object::Drain(drain) => self.snapshot.set_drain(drain),
            Object::PodMap(pods) => self.snapshot.set_node_pods(pods),
            Object::Namespace(namespace) => {
                self.snapshot
                    .set_namespace(namespace.name, namespace.labels);
            }
        }
    }

    fn remove(&mut self, key: &ObjectKey) {
        match key.kind {
            Kind::Node => self.snapshot.remove_node(&key.name.name),
            Kind::Service => self.snapshot.remove_service(&key.name),
            Kind::EndpointSlice => self.snapshot.remove_slice(&key.name),
            Kind::ServiceCidr => {
                self.cidrs.remove(&key.name.name);
                self.publish_cidrs();
            }
            Kind::Namespace => self.snapshot.remove_namespace(&key.name.name),
            Kind::TopologyPolicy => {
                let ObjectName { namespace, name } = &key.name;
                self.snapshot.remove_policy(Some(namespace), name);
            }
            Kind::ClusterTopologyPolicy => self.snapshot.remove_policy(None, &key.name.name),
            Kind::TopologyDrain => self.snapshot.remove_drain(&key.name.name),
            Kind::PodMap => self.snapshot.remove_node_pods(&key.name.name),
        }
    }

    fn publish_cidrs(&mut self) {
        let mut cidrs: Vec<IpNetwork> = self.cidrs.values().flatten().copied().collect();
        if self.cidrs.is_empty() {
            cidrs.clone_from(&self.default_cidrs);
        }
        cidrs.sort_unstable();
        cidrs.dedup();
        self.snapshot.set_service_cidrs(cidrs);
    }

    /// Stores the report on a file and returns its warnings that are new.
    fn report(&mut self, report: FileReport) -> Vec<Warning> {
        let before = self.reports.remove(&report.file);
        let before = before.map(|report| report.warnings).unwrap_or_default();
        let new = news(&before, &report.warnings);
        if !report.warnings.is_empty() || !report.skipped.is_empty() {
            self.reports.insert(Arc::clone(&report.file), report);
        }
        new
    }
}

/// The warnings in `now` that were not in `before`. A warning whose line moved is not new.
fn news(before: &[Warning], now: &[Warning]) -> Vec<Warning> {
    let before: FxHashSet<_> = before.iter().map(Warning::identity).collect();
    now.iter()
        .filter(|warning| !before.contains(&warning.identity()))
        .cloned()
        .collect()
}
