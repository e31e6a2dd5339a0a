//! Merges the objects of all resources into one stream of events.
//!
//! Of each object only the name and a fingerprint of the reported content are kept. A relist is
//! compared with these, so it reports only differences. A list that breaks in the middle removes
//! nothing.

mod changed_slice;
mod known_objects;
mod nodes;
mod reports;
#[cfg(test)]
mod tests;
mod watched;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use topology_core::model::ObjectName;

use super::options::{ClientNodes, NodeSource, Relists, WatchOptions};
use super::resources::{Need, ResourceId, WatchedResource};
use crate::convert::{self, Context, Converted, Outcome};
use crate::event::{Batch, Completeness, Event};
use crate::object::{Kind, Object, ObjectKey};
use crate::source::{ObjectState, fingerprint, last_good_stays};
use crate::warning::Warning;
use kube_io::ApiError;
use object_tree::Node;

use super::node_source::label_usage::LabelUsage;
use super::node_source::topology_map::{NodeScope, TopologyMaps};
use super::node_source::waiting_objects::WaitingObjects;
use known_objects::KnownObjects;
pub(crate) use nodes::NodeQuery;
use reports::ChangedReports;
use watched::Watched;

#[derive(Debug)]
pub(crate) struct Reflector {
    context: Context,
    relists: Relists,
    watched: Vec<Watched>,
    /// The TopologyMaps, if these may replace the Nodes.
    maps: Option<TopologyMaps>,
    /// The labels of other Nodes in use; `None` if all labels are kept.
    label_usage: Option<LabelUsage>,
    /// Whether any policy has selected by namespaces since the start.
    by_namespace: bool,
    /// Objects that are not usable yet, with the time when they are (milliseconds since 1970).
    early: BTreeMap<ObjectKey, (i64, ResourceId, Node)>,
    completeness: Option<Completeness>,
    waiting_objects: WaitingObjects,
    /// The labels of the last `Unread` event.
    unread: BTreeSet<Arc<str>>,
    /// The events of the next batches.
    events: Vec<Event>,
    reports: ChangedReports,
}

/// How many events a batch has at most.
const BATCH: usize = 256;

impl Reflector {
    pub(crate) fn new(options: &WatchOptions, resources: &[WatchedResource]) -> Self {
        let (maps, label_usage) = match &options.nodes {
            NodeSource::Whole => (None, None),
            NodeSource::Nodes { own } => (None, Some(LabelUsage::new(Arc::clone(own), true))),
            NodeSource::Map { own } => {
                let selectors = options.clients == ClientNodes::All;
                let label_usage = LabelUsage::new(Arc::clone(own), selectors);
                (Some(TopologyMaps::new(Arc::clone(own))), Some(label_usage))
            }
        };
        Self {
            context: Context {
                allowed: options.allowed.clone(),
                services: options.services,
                clock: options.clock.clone(),
                ..Context::default()
            },
            relists: options.relists,
            early: BTreeMap::new(),
            watched: resources.iter().map(Watched::new).collect(),
            maps,
            label_usage,
            by_namespace: false,
            completeness: None,
            waiting_objects: WaitingObjects::default(),
            unread: BTreeSet::new(),
            events: vec![Event::Begin],
            reports: ChangedReports::default(),
        }
    }

    /// Takes the next batch; `None` if nothing has changed.
    pub(crate) fn take(&mut self) -> Option<Batch> {
        self.context.interner.sweep();
        self.report_waiting();
        self.send_unread();
        if self.events.len() > BATCH {
            let later = self.events.split_off(BATCH);
            return Some(Batch {
                events: std::mem::replace(&mut self.events, later),
                reports: Vec::new(),
            });
        }
        let batch = Batch {
            events: std::mem::take(&mut self.events),
            reports: self.reports.take(),
        };
        let is_empty = batch.events.is_empty() && batch.reports.is_empty();
        (!is_empty).then_some(batch)
    }

    /// Counts the known objects of a resource, without Nodes that come from TopologyMaps.
    pub(crate) fn count(&self, id: ResourceId) -> usize {
        let own = self.only_node().filter(|_| id == ResourceId::NODES);
        let known = self.known(id);
        known.map_or(0, |known| match own {
            Some(own) => usize::from(known.has(&ObjectName::new("", own))),
            None => known.len(),
        })
    }

    pub(crate) fn needs_namespaces(&self) -> bool {
        self.by_namespace
    }

    /// Whether the labels in use are known well enough to list Nodes: the lists of policies and
    /// drains are complete. Does not wait for Services, whose list is long.
    pub(crate) fn knows_label_usage(&self) -> bool {
        let is_user = |kind| {
            matches!(
                kind,
                Kind::TopologyPolicy | Kind::ClusterTopologyPolicy | Kind::TopologyDrain
            )
        };
        let mut watched = self.watched.iter();
        self.label_usage.is_none()
            || self.node_scope() == NodeScope::Own
            || watched.all(|it| !is_user(it.resource.id.kind()) || it.known.is_listed())
    }

    pub(crate) fn begin(&mut self, id: ResourceId) {
        if let Some(known) = self.known_mut(id) {
            known.begin();
        }
        if id == ResourceId::NODES {
            self.begin_nodes();
        }
    }

    /// Ends a list: removes the objects that it did not name, unless the list is doubtful; see
    /// [`Reflector::doubt`]. `now` is of a monotonic clock.
    pub(crate) fn listed(&mut self, id: ResourceId, now: Duration) {
        let confirms = self.relists == Relists::Confirm;
        self.end(id, confirms.then_some(now));
    }

    /// Ends a list, which is believed without `now`.
    fn end(&mut self, id: ResourceId, now: Option<Duration>) {
        let Some(known) = self.known_mut(id) else {
            return;
        };
        let gone = known.end(id.kind(), now);
        let missing = self.doubt(id).map(|(_, missing)| missing);
        self.reports.set_doubt(self.name(id), missing);
        for key in gone {
            self.object_deleted(id, &key);
        }
        self.nodes_listed(id);
        self.complete_if_listed();
    }

    /// When to list a resource again because its last list lacked more than half of the known
    /// objects, and how many objects stay until then.
    pub(crate) fn doubt(&self, id: ResourceId) -> Option<(Duration, usize)> {
        self.known(id)?.doubt()
    }

    /// Removes all objects of a resource that the server does not know.
    pub(crate) fn absent(&mut self, id: ResourceId) {
        if let Some(known) = self.known_mut(id) {
            known.begin();
        }
        self.end(id, None);
    }

    /// Completes the start without the optional resources that cannot be read. Until these are
    /// read, nothing that is found in the kernel counts as unknown.
    pub(crate) fn complete_partially(&mut self) {
        let has_enough = |it: &Watched| it.resource.need != Need::Always || it.known.is_listed();
        let ready = self.completeness.is_none() && self.knows_nodes() && self.can_complete();
        if ready && self.watched.iter().all(has_enough) {
            self.complete(Completeness::Partial);
        }
    }

    /// Applies an object that was listed, added or modified.
    pub(crate) fn apply_object(&mut self, id: ResourceId, node: &Node) {
        if id == ResourceId::TopologyMaps {
            return self.apply_map(node);
        }
        let file = "".into();
        let Converted {
            line: _,
            outcome,
            usable_at,
            warnings,
        } = convert::object(node, &file, &mut self.context);
        match outcome {
            Outcome::Object(object) => {
                self.watch_selectors(&object);
                let key = object.key();
                self.early.remove(&key);
                if self.is_mapped(&key) {
                    return;
                }
                let state = ObjectState::Good(fingerprint(&object));
                let was_sent = self.was_good(id, &key);
                let is_changed = self.put(id, &key, state);
                self.reports.set_object(&key, warnings);
                if is_changed {
                    self.send_changed(&key, object, was_sent, node);
                }
            }
            Outcome::Ignored(key, reason) => {
                let is_changed = self.put(id, &key, ObjectState::Ignored(reason));
                self.reports.set_object(&key, warnings);
                self.forget_labels(&key);
                if is_changed {
                    self.events.push(Event::Ignore(key, reason));
                }
            }
            Outcome::Invalid(key) => {
                match usable_at {
                    Some(at) => drop(self.early.insert(key.clone(), (at, id, node.clone()))),
                    None => drop(self.early.remove(&key)),
                }
                self.invalid(id, key, warnings);
            }
            // An API server sends only valid names, and the kind is that of the request. An object
            // without a name could not be reported.
            Outcome::OtherKind(_) | Outcome::Unknown => {}
        }
    }

    /// Checks objects again that were not usable yet. The check of a drain depends on the clock,
    /// and clocks differ: a renewal that is 72 hours ahead by the clock of the controller may be
    /// further ahead by the clock of the agent.
    pub(crate) fn recheck_early(&mut self) {
        let Some(now) = self.context.clock.now() else {
            return;
        };
        // During a list, and while a list is in doubt, the object may not exist any more.
        let is_due = |(at, id, _): &(i64, ResourceId, Node)| {
            *at <= now && self.known(*id).is_some_and(KnownObjects::is_settled)
        };
        let due = self.early.iter().filter(|(_, early)| is_due(early));
        let due: Vec<ObjectKey> = due.map(|(key, _)| key.clone()).collect();
        for key in due {
            if let Some((_, id, node)) = self.early.remove(&key) {
                self.apply_object(id, &node);
            }
        }
    }

    pub(crate) fn delete_object(&mut self, id: ResourceId, node: &Node) {
        let Some(key) = self.key(id, node) else {
            return;
        };
        if id != ResourceId::TopologyMaps && self.is_mapped(&key) {
            return;
        }
        let known = self.known_mut(id);
        if known.is_some_and(|known| known.remove(&key.name)) {
            self.object_deleted(id, &key);
        }
    }

    fn object_deleted(&mut self, id: ResourceId, key: &ObjectKey) {
        match id {
            ResourceId::TopologyMaps => self.delete_map(&key.name.name),
            ResourceId::Objects(_) => self.forget(key),
        }
    }

    fn invalid(&mut self, id: ResourceId, key: ObjectKey, mut warnings: Vec<Warning>) {
        if self.was_good(id, &key) {
            warnings.push(last_good_stays(&"".into(), 0, &key));
        }
        let is_changed = self.put(id, &key, ObjectState::Invalid);
        self.reports.set_object(&key, warnings);
        if is_changed {
            self.events.push(Event::Keep(key));
        }
    }

    fn was_good(&self, id: ResourceId, key: &ObjectKey) -> bool {
        let known = self.known(id);
        known.is_some_and(|known| known.was_good(&key.name))
    }

    fn put(&mut self, id: ResourceId, key: &ObjectKey, state: ObjectState) -> bool {
        let known = self.known_mut(id);
        known.is_some_and(|known| known.put(key, state))
    }

    fn known(&self, id: ResourceId) -> Option<&KnownObjects> {
        let mut watched = self.watched.iter();
        let watched = watched.find(|watched| watched.resource.id == id)?;
        Some(&watched.known)
    }

    fn known_mut(&mut self, id: ResourceId) -> Option<&mut KnownObjects> {
        let mut watched = self.watched.iter_mut();
        let watched = watched.find(|watched| watched.resource.id == id)?;
        Some(&mut watched.known)
    }

    fn name(&self, id: ResourceId) -> &'static str {
        let mut watched = self.watched.iter();
        let watched = watched.find(|watched| watched.resource.id == id);
        watched.map_or("", |watched| watched.resource.name)
    }

    fn forget(&mut self, key: &ObjectKey) {
        self.early.remove(key);
        self.reports.set_object(key, Vec::new());
        self.forget_labels(key);
        self.events.push(Event::Delete(key.clone()));
    }

    /// Reports why a resource cannot be read; withdraws the report without an error.
    pub(crate) fn report_error(
        &mut self,
        id: ResourceId,
        server: &Arc<str>,
        error: Option<&ApiError>,
    ) {
        self.reports.set_error(self.name(id), server, error);
    }

    fn watch_selectors(&mut self, object: &Object) {
        if let Object::Policy(policy) = object {
            let selector = &policy.namespace_selector;
            self.by_namespace |= !selector.labels.is_empty() || !selector.expressions.is_empty();
        }
    }

    /// Completes the start when every resource is listed.
    fn complete_if_listed(&mut self) {
        let by_namespace = self.by_namespace;
        let mut watched = self.watched.iter();
        let all = watched.all(|it| match it.resource.need {
            Need::IfSelected if !by_namespace => true,
            Need::IfMapped => true,
            Need::Always | Need::IfKnown | Need::IfSelected => it.known.is_listed(),
        });
        if all
            && self.knows_nodes()
            && self.can_complete()
            && self.completeness != Some(Completeness::Whole)
        {
            self.complete(Completeness::Whole);
        }
    }

    fn complete(&mut self, completeness: Completeness) {
        self.send_substitutes();
        self.completeness = Some(completeness);
        self.events.push(Event::Complete(completeness));
    }

    fn key(&mut self, id: ResourceId, node: &Node) -> Option<ObjectKey> {
        let kind = id.kind();
        let metadata = node.get("metadata")?;
        let text = |name: &str| metadata.get(name).and_then(Node::text);
        let namespace = text("namespace").unwrap_or_default();
        let name = text("name")?;
        let interner = &mut self.context.interner;
        let name: Arc<str> = if kind == Kind::EndpointSlice {
            name.into()
        } else {
            interner.text(name)
        };
        Some(ObjectKey {
            kind,
            name: ObjectName::new(interner.text(namespace), name),
        })
    }
}
