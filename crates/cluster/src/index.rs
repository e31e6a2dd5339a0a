//! Events into a [`Snapshot`], and the gate that keeps half a list from being acted upon.

// A source, reason, note or fact that is added must be thought of everywhere, and not fall under `_`.
#![warn(clippy::wildcard_enum_match_arm)]

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use rustc_hash::FxHashSet;
use topology_core::model::{IpNetwork, ObjectName};
use topology_core::snapshot::Snapshot;

use crate::event::{Batch, Completeness, Event, FileReport};
use crate::object::{Ignored, Kind, Object, ObjectKey};
use crate::warning::Warning;

/// Everything that is known of the cluster.
///
/// Feed it [`Batch`]es in the order in which they came. Until [`Index::completeness`] is there, the
/// snapshot is a part of the cluster and nothing may be programmed from it.
#[derive(Debug, Default)]
pub struct Index {
    snapshot: Snapshot,
    /// What existed when the list that is being read began, and was not named in it yet.
    unnamed: FxHashSet<ObjectKey>,
    completeness: Option<Completeness>,
    ignored: BTreeMap<ObjectKey, Ignored>,
    reports: BTreeMap<Arc<str>, FileReport>,
    cidrs: BTreeMap<Arc<str>, Vec<IpNetwork>>,
    /// Where Service addresses come from while no object says it.
    default_cidrs: Vec<IpNetwork>,
}

impl Index {
    /// An index that knows nothing yet. `service_cidrs` counts as long as the cluster has no
    /// `ServiceCIDR` object.
    pub fn new(service_cidrs: Vec<IpNetwork>) -> Self {
        let mut index = Self {
            default_cidrs: service_cidrs,
            ..Self::default()
        };
        index.publish_cidrs();
        index
    }

    /// Takes what a source says and returns the warnings that were not there before.
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

    /// Whether a full list was read at least once, and whether it named everything.
    pub fn completeness(&self) -> Option<Completeness> {
        self.completeness
    }

    /// What is known of the cluster.
    pub fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    /// What is known of the cluster, for taking note of what changed.
    pub fn snapshot_mut(&mut self) -> &mut Snapshot {
        &mut self.snapshot
    }

    /// Takes the snapshot out.
    pub fn into_snapshot(self) -> Snapshot {
        self.snapshot
    }

    /// The objects that are sound and none of our business, and why.
    pub fn ignored(&self) -> &BTreeMap<ObjectKey, Ignored> {
        &self.ignored
    }

    /// Everything that is wrong in the input now, by file and line.
    pub fn warnings(&self) -> impl Iterator<Item = &Warning> {
        self.reports.values().flat_map(|report| &report.warnings)
    }

    /// How many objects of kinds that are not read there are, by kind.
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
            Event::Complete(completeness) => self.complete(completeness),
        }
    }

    /// The keys of all objects that exist.
    fn existing(&self) -> impl Iterator<Item = ObjectKey> + '_ {
        let snapshot = &self.snapshot;
        let nodes = snapshot.nodes().map(|node| (Kind::Node, &node.name));
        let cidrs = self.cidrs.keys().map(|name| (Kind::ServiceCidr, name));
        let namespaces = snapshot.namespaces().map(|name| (Kind::Namespace, name));
        let drains = snapshot
            .drains()
            .map(|drain| (Kind::TopologyDrain, &drain.name));
        let global = nodes.chain(cidrs).chain(namespaces).chain(drains);
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

    /// Ends a list: what it did not name has gone, whichever earlier list had named it.
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

    /// Takes what is said of a file and returns what was not said before.
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

/// The warnings in `now` that were not in `before`, wherever they stand in the file.
fn news(before: &[Warning], now: &[Warning]) -> Vec<Warning> {
    let before: FxHashSet<_> = before.iter().map(Warning::gist).collect();
    now.iter()
        .filter(|warning| !before.contains(&warning.gist()))
        .cloned()
        .collect()
}
