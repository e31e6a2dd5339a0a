//! The observed state of the cluster, and the writes that follow from it. No I/O, no clock.
//!
//! A write is the difference between the desired and the observed object. So nothing is written
//! twice, and a second or restarted controller has nothing to write.

mod annotation_labels;
mod collection;
mod condition;
mod drain;
mod hints;
mod levels;
mod map;
mod map_keys;
mod node_labels;
mod nodes;
mod observed;
mod pods;
mod policy;
mod report;
mod selected_nodes;
#[cfg(test)]
mod tests;
mod validate;
mod value;
mod whole_object;
mod write;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crd::topology_agent::AgentStatus;
use serde_json::Value;
use topology_core::hints::Zones;
use topology_core::model::ObjectName;

use crate::event_recorder::{Key, ServiceFallback};

use annotation_labels::AnnotationLabels;
pub use collection::Collection;
use hints::SliceHints;
pub use hints::{HintCounts, NewEvent};
use map_keys::MapKeys;
pub use nodes::NodeInfo;
use observed::Observed;
pub use pods::AddressConflict;
use pods::PodLocations;
use value::put;
pub use write::{MANAGER, Wait, Write, WriteKind};

pub fn name_of(object: &Value) -> ObjectName {
    value::name(object)
}

#[derive(Debug, Default)]
pub struct State {
    observed: Observed,
    /// Nodes whose reports cannot be read completely, and why.
    unread: BTreeMap<String, String>,
    /// Whether time alone may change the status of a policy.
    waits: bool,
    left_out: BTreeMap<String, String>,
    map_keys: MapKeys,
    writes_hints: bool,
    hints: SliceHints,
    pods: PodLocations,
}

/// What the command line chooses.
#[derive(Debug, Clone, Default)]
pub struct StateOptions {
    /// Labels that the map holds even if nothing uses them.
    pub label_keys: BTreeSet<String>,
    /// The labels that annotations may use besides those of every map; `None` allows all.
    pub annotation_label_keys: Option<BTreeSet<Arc<str>>>,
    pub writes_hints: bool,
}

impl State {
    /// An empty state.
    pub fn new(options: StateOptions) -> Self {
        Self {
            observed: Observed {
                extra_keys: options.label_keys,
                annotations: AnnotationLabels::new(options.annotation_label_keys),
                ..Observed::default()
            },
            writes_hints: options.writes_hints,
            ..Self::default()
        }
    }

    /// Records an object that was added or changed. Returns whether the writes may differ.
    pub fn apply(&mut self, collection: Collection, object: Value) -> bool {
        let name = value::name(&object);
        match collection {
            Collection::Nodes => {
                let info = NodeInfo::of(&with_kind(collection, object));
                self.node_is(&name.name, Some(info))
            }
            Collection::Agents => match report::read(&object) {
                Ok((status, unread)) => self.reported(&name.name, status, unread),
                // The last report stays: this one does not say that a fallback has ended.
                Err(why) => self.unread.insert(name.name.to_string(), why).is_none(),
            },
            Collection::ClusterPolicies
            | Collection::Policies
            | Collection::Drains
            | Collection::Maps => self.written(collection, name, with_kind(collection, object)),
            Collection::Services => {
                let uses_other_labels = self.observed.annotations.apply(&object);
                let needs_hints = self.writes_hints && self.hints.apply(collection, &object);
                uses_other_labels || needs_hints
            }
            Collection::Slices => self.hints.apply(collection, &object),
            Collection::Pods | Collection::PodMaps | Collection::PodLocators => {
                self.pods.apply(collection, &object);
                false
            }
        }
    }

    /// Records a Node; `None` if it was deleted. Returns whether the writes may differ.
    fn node_is(&mut self, name: &str, info: Option<NodeInfo>) -> bool {
        let old = self.observed.nodes.get(name);
        if old == info.as_ref() {
            return false;
        }
        let (old, new) = (
            old.map(NodeInfo::labels),
            info.as_ref().map(NodeInfo::labels),
        );
        if old != new {
            self.pods.node_changed(name);
        }
        self.observed.labels.replace(old, new);
        self.observed.chosen.forget();
        match info {
            Some(info) => drop(self.observed.nodes.insert(name.to_owned(), info)),
            None => drop(self.observed.nodes.remove(name)),
        }
        true
    }

    /// Records the report of an agent, if there is one, and which part of it cannot be read.
    fn reported(
        &mut self,
        node: &str,
        status: Option<AgentStatus>,
        unread: Option<String>,
    ) -> bool {
        match unread {
            Some(why) => drop(self.unread.insert(node.to_owned(), why)),
            None => drop(self.unread.remove(node)),
        }
        let had = self.observed.reports.has(node);
        if had != status.is_some() {
            self.observed.chosen.forget();
        }
        self.observed.reports.set(node, status)
    }

    fn written(&mut self, collection: Collection, name: ObjectName, object: Value) -> bool {
        let key = (collection, name);
        let before = self.observed.objects.get(&key);
        if before == Some(&object) {
            return false;
        }
        // A change of the status does not affect the validation of the spec.
        let same_spec = before.is_some_and(|before| {
            let parts = [
                "/spec",
                "/metadata/generation",
                "/metadata/creationTimestamp",
            ];
            parts
                .iter()
                .all(|part| before.pointer(part) == object.pointer(part))
        });
        if !same_spec {
            self.observed.policies.remove(&key);
            if collection == Collection::Drains {
                self.observed.drains.remove(&key.1);
            }
        }
        self.observed.objects.insert(key, object);
        true
    }

    /// Records a deletion. Returns whether the writes may differ.
    pub fn delete(&mut self, collection: Collection, name: &ObjectName) -> bool {
        match collection {
            Collection::Nodes => self.node_is(&name.name, None),
            Collection::Agents => self.reported(&name.name, None, None),
            Collection::Services => {
                let used_labels = self.observed.annotations.delete(name);
                let had_hints = self.hints.delete(collection, name);
                used_labels || had_hints
            }
            Collection::Slices => self.hints.delete(collection, name),
            Collection::Pods | Collection::PodMaps | Collection::PodLocators => {
                self.pods.delete(collection, name);
                false
            }
            Collection::ClusterPolicies
            | Collection::Policies
            | Collection::Drains
            | Collection::Maps => {
                let key = (collection, name.clone());
                self.observed.policies.remove(&key);
                self.observed.generations.remove(&key);
                if collection == Collection::Drains {
                    self.observed.drains.remove(name);
                }
                self.observed.objects.remove(&key).is_some()
            }
        }
    }

    /// The names of all observed objects of a collection, to compare with a new list.
    pub fn names(&self, collection: Collection) -> BTreeSet<ObjectName> {
        let global = |name: &String| ObjectName::new("", &**name);
        match collection {
            Collection::Nodes => self.observed.nodes.keys().map(global).collect(),
            Collection::Agents => self.observed.reports.nodes().map(global).collect(),
            Collection::Services if !self.writes_hints => self.observed.annotations.names(),
            Collection::Services | Collection::Slices => self.hints.names(collection),
            Collection::Pods | Collection::PodMaps | Collection::PodLocators => {
                self.pods.names(collection)
            }
            Collection::ClusterPolicies
            | Collection::Policies
            | Collection::Drains
            | Collection::Maps => self
                .observed
                .of(collection)
                .map(|(name, _)| name.clone())
                .collect(),
        }
    }

    pub fn listed(&mut self, collection: Collection) {
        self.observed.annotations.is_listed |= collection == Collection::Services;
        if Collection::FOR_HINTS.contains(&collection) {
            self.hints.listed(collection);
        }
    }

    /// Records a write and the response of the API server. Returns the Event to record, if any.
    pub fn record_write(&mut self, write: &Write, answer: Value) -> Option<NewEvent> {
        if write.kind == WriteKind::Delete {
            self.delete(write.collection, &write.name);
            return None;
        }
        let key = (write.collection, write.name.clone());
        let before = self.observed.objects.get(&key);
        let event = before.and_then(|before| levels::event(write.collection, before, &write.body));
        if write.collection == Collection::Slices {
            self.hints.record_write(&write.body, &answer);
        }
        self.apply(write.collection, answer);
        event
    }

    /// Forgets the hints, the labels of the map and the holders of addresses that this replica chose, because another
    /// replica may have written since.
    pub fn forget(&mut self) {
        self.map_keys = MapKeys::default();
        self.hints.forget();
        self.pods.forget();
    }

    /// Decides about hints again; returns the Events to record.
    pub fn decide_hints(&mut self) -> Vec<NewEvent> {
        let zones = self.zones();
        self.hints.decide(zones.as_ref())
    }

    pub fn hint_counts(&self) -> HintCounts {
        self.hints.counts()
    }

    /// The CPU of each zone, if a Service requests hints by CPU.
    fn zones(&self) -> Option<Zones> {
        let nodes = || {
            self.observed
                .nodes
                .iter()
                .map(|(name, info)| info.node(name))
        };
        self.hints.needs_zones().then(|| Zones::of(nodes()))?
    }

    /// Whether time alone may change the labels of the map, or a status: of a drain, or of a policy
    /// that nodes may not have reported yet.
    pub fn waits(&self, now: i64) -> bool {
        self.waits
            || self.map_keys.is_due(now)
            || self.observed.of(Collection::Drains).next().is_some()
    }

    /// Nodes that the last [`State::plan`] left out of the map, and why.
    pub const fn left_out(&self) -> &BTreeMap<String, String> {
        &self.left_out
    }

    /// Nodes whose reports cannot be read completely, and why.
    pub const fn unread_reports(&self) -> &BTreeMap<String, String> {
        &self.unread
    }

    pub fn node_count(&self) -> usize {
        self.observed.nodes.len()
    }

    /// Returns the writes; `now`: milliseconds since 1970. Hints are those of [`State::decide_hints`].
    pub fn plan(&mut self, now: i64) -> Vec<Write> {
        self.observed.validate(now);
        let keys = self.map_keys.choose(&self.observed, now);
        let map::MapPlan {
            mut writes,
            left_out,
        } = map::plan(&self.observed, &keys);
        self.pods.use_keys(keys);
        let mut waits = false;
        for ((collection, name), validated) in &self.observed.policies {
            let known = self.observed.generations.get(&(*collection, name.clone()));
            let since = known.map_or(now, |(_, since)| *since);
            let (write, may_change) =
                policy::plan(&self.observed, *collection, name, validated, since, now);
            writes.extend(write);
            waits |= may_change;
        }
        let drains = self.observed.of(Collection::Drains);
        writes.extend(drains.filter_map(|(name, object)| {
            let validated = self.observed.drains.get(name)?;
            drain::plan(&self.observed, name, object, validated, now)
        }));
        writes.extend(self.hints.plan());
        (self.waits, self.left_out) = (waits, left_out);
        writes
    }

    /// Returns writes of PodMaps and PodLocators, except those that must wait. Call it after [`State::plan`], which
    /// reads the policies: locators have the labels that they use.
    pub fn plan_pods(&mut self, must_wait: impl Fn(Collection, &ObjectName) -> Wait) -> Vec<Write> {
        self.pods.plan(&self.observed, must_wait)
    }

    /// The Pods that report an address of another Pod.
    pub fn address_conflicts(&self) -> BTreeSet<AddressConflict> {
        self.pods.conflicts()
    }

    /// The fallbacks of all Nodes, and the namespaces of which a node may have more than it reports.
    pub fn fallbacks(&self) -> (BTreeMap<Key, ServiceFallback>, BTreeSet<Arc<str>>) {
        self.observed.reports.fallbacks()
    }
}

/// The object with its kind, which objects in a list may not have.
fn with_kind(collection: Collection, mut object: Value) -> Value {
    put(&mut object, "apiVersion", collection.version());
    put(&mut object, "kind", collection.kind());
    object
}
