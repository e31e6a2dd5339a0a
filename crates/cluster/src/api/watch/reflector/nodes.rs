//! Sends events for Nodes of `TopologyMap` objects, and holds objects until their labels are known.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::known_objects::KnownObjects;
use super::{Reflector, ResourceId};
use crate::api::watch::node_source::LabelOwner;
use crate::api::watch::node_source::label_usage::{LabelUsage, label_owner};
use crate::api::watch::node_source::topology_map::{MapGap, MapReadiness, NodeScope, TopologyMaps};
use crate::convert;
use crate::event::Event;
use crate::object::{Kind, Object, ObjectKey};
use crate::source::{ObjectState, fingerprint};
use crate::warning::{Code, Subject, Warning};
use object_tree::Node;

/// The name of the report about TopologyMaps.
const REPORT: &str = "TopologyMap";
/// The name of the report about objects that wait for labels.
const WAITING: &str = "labels";
/// How many waiting objects the report names.
const NAMED: usize = 10;

/// The query for Nodes. They are listed again when it changes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct NodeQuery {
    /// The name of the only requested Node; `None` if all are requested.
    pub(crate) only: Option<Arc<str>>,
    /// How many lists were requested because of labels.
    round: u32,
}

impl Reflector {
    /// Whether TopologyMaps can replace the Nodes; `None` if they are not used.
    pub(crate) fn readiness(&self) -> Option<&MapReadiness> {
        self.maps.as_ref().map(|maps| &maps.readiness)
    }

    pub(crate) fn node_scope(&self) -> NodeScope {
        let maps = self.maps.as_ref();
        maps.map_or(NodeScope::All, |maps| maps.node_scope)
    }

    /// The agent's own Node, if the others come from TopologyMaps.
    pub(crate) fn only_node(&self) -> Option<Arc<str>> {
        let maps = self.maps.as_ref()?;
        (maps.node_scope == NodeScope::Own).then(|| Arc::clone(maps.own()))
    }

    pub(crate) fn node_query(&self) -> NodeQuery {
        NodeQuery {
            only: self.only_node(),
            round: self.label_usage.as_ref().map_or(0, LabelUsage::round),
        }
    }

    /// The owner of objects that wait for labels, unless a list that has them is under way.
    pub(crate) fn label_owner_waiting(&self) -> Option<LabelOwner> {
        let is_read = self
            .known(ResourceId::NODES)
            .is_some_and(KnownObjects::is_listed);
        let label_usage = self.label_usage.as_ref();
        label_usage
            .filter(|_| self.node_scope() == NodeScope::All && is_read)
            .and_then(LabelUsage::owner_waiting)
    }

    /// Records that the list which objects wait for is delayed, because the last was recent.
    pub(crate) fn mark_delayed(&mut self) {
        self.waiting_objects.set_delayed(true);
    }

    pub(crate) fn request_nodes(&mut self) {
        self.waiting_objects.set_delayed(false);
        if let Some(label_usage) = &mut self.label_usage {
            label_usage.next_request();
        }
    }

    /// Whether `Complete` was sent.
    pub(crate) fn is_complete(&self) -> bool {
        self.completeness.is_some()
    }

    /// Switches the Nodes that are read. Known Nodes stay until the new source is listed.
    pub(crate) fn set_node_scope(&mut self, node_scope: NodeScope) {
        if let Some(maps) = &mut self.maps {
            maps.node_scope = node_scope;
            let label_usage = self.label_usage.iter_mut();
            label_usage.for_each(|label_usage| label_usage.switch_source(maps.keys()));
        }
        if let Some(nodes) = self.known_mut(ResourceId::NODES) {
            nodes.unlist();
        }
        if node_scope == NodeScope::Own {
            self.send_all_nodes();
            self.send_ready();
        }
    }

    /// Records whether the API server refuses to serve a resource; only TopologyMaps matter.
    pub(crate) fn set_refused(&mut self, id: ResourceId, refused: bool) {
        if let (ResourceId::TopologyMaps, Some(maps)) = (id, &mut self.maps) {
            maps.set_refused(refused);
            self.update_readiness();
        }
    }

    /// Whether the object is a Node that comes from TopologyMaps.
    pub(super) fn is_mapped(&self, key: &ObjectKey) -> bool {
        let own = self.only_node();
        key.kind == Kind::Node && own.is_some_and(|own| key.name.name != own)
    }

    /// Begins a list of Nodes. A list of only the agent's own Node must not remove the Nodes that
    /// come from TopologyMaps.
    pub(super) fn begin_nodes(&mut self) {
        if let Some(label_usage) = &mut self.label_usage {
            self.context.others = Some(label_usage.begin());
        }
        let Some(own) = self.only_node() else { return };
        if let Some(nodes) = self.known_mut(ResourceId::NODES) {
            nodes.mark_named(|name| name.name != own);
        }
    }

    pub(super) fn apply_map(&mut self, node: &Node) {
        let (name, map, warnings) = convert::node_map(node, &mut self.context);
        let key = ObjectKey::global(Kind::Node, &name);
        self.put(ResourceId::TopologyMaps, &key, ObjectState::Good(0));
        self.reports
            .set(format!("{REPORT} {name}").into(), warnings);
        let Some(maps) = &mut self.maps else { return };
        let changed = maps.put(&name, map);
        self.send_changed_nodes(&changed);
    }

    pub(super) fn delete_map(&mut self, name: &str) {
        self.reports
            .set(format!("{REPORT} {name}").into(), Vec::new());
        let Some(maps) = &mut self.maps else { return };
        let changed = maps.remove(name);
        self.send_changed_nodes(&changed);
    }

    /// Sends the changed Nodes, if the TopologyMaps were ready before and still are.
    fn send_changed_nodes(&mut self, changed: &BTreeSet<Arc<str>>) {
        let was_ready = self.readiness() == Some(&MapReadiness::Ready);
        self.refresh_readiness();
        if was_ready && self.is_read_from_map() {
            self.send_nodes(changed);
        }
        self.send_ready();
        self.complete_if_listed();
    }

    /// Ends a list of TopologyMaps or Nodes; ignores other resources.
    pub(super) fn nodes_listed(&mut self, id: ResourceId) {
        let all = self.node_scope() == NodeScope::All;
        match (id, &mut self.label_usage, &mut self.maps) {
            (ResourceId::TopologyMaps, _, Some(maps)) => {
                maps.listed();
                self.update_readiness();
            }
            (ResourceId::NODES, Some(label_usage), _) => {
                label_usage.listed(all);
                self.send_ready();
            }
            _ => {}
        }
    }

    fn is_read_from_map(&self) -> bool {
        self.node_scope() == NodeScope::Own && self.readiness() == Some(&MapReadiness::Ready)
    }

    /// Whether the source of Nodes is usable. TopologyMaps must be ready.
    pub(super) fn knows_nodes(&self) -> bool {
        self.node_scope() == NodeScope::All || self.is_read_from_map()
    }

    /// Checks the readiness of the TopologyMaps, and sends the events that depend on it.
    fn update_readiness(&mut self) {
        self.refresh_readiness();
        self.send_ready();
        self.complete_if_listed();
    }

    /// Checks the readiness of the TopologyMaps. Returns whether it changed.
    fn refresh_readiness(&mut self) -> bool {
        let (Some(maps), Some(label_usage)) = (&mut self.maps, &self.label_usage) else {
            return false;
        };
        let readiness = maps.check(label_usage);
        let has_changed = readiness != maps.readiness;
        if has_changed {
            maps.readiness = readiness;
            self.report_gap();
            if self.is_read_from_map() {
                self.send_all_nodes();
            }
        }
        has_changed
    }

    fn report_gap(&mut self) {
        let gap = match self.readiness() {
            Some(MapReadiness::Missing(gap)) => Some(warning(gap)),
            _ => None,
        };
        self.reports.set(REPORT.into(), gap.into_iter().collect());
    }

    /// Sends all Nodes of the TopologyMaps, and removes the Nodes that these no longer have.
    fn send_all_nodes(&mut self) {
        let sent = self.known(ResourceId::NODES).into_iter();
        let sent = sent.flat_map(|nodes| nodes.names().map(|name| &name.name));
        let mapped = self.maps.iter().flat_map(TopologyMaps::names);
        let names: BTreeSet<Arc<str>> = sent.chain(mapped).cloned().collect();
        self.send_nodes(&names);
    }

    /// Sends these Nodes as the TopologyMaps have them.
    fn send_nodes(&mut self, names: &BTreeSet<Arc<str>>) {
        for name in names {
            let key = ObjectKey::global(Kind::Node, name);
            let Some(maps) = &self.maps else { return };
            if name == maps.own() {
                continue;
            }
            if let Some(node) = maps.node(name) {
                let object = Object::Node(node.clone());
                if self.put(
                    ResourceId::NODES,
                    &key,
                    ObjectState::Good(fingerprint(&object)),
                ) {
                    self.events.push(Event::Apply(object));
                }
            } else if let Some(true) = self
                .known_mut(ResourceId::NODES)
                .map(|nodes| nodes.remove(&key.name))
            {
                self.forget(&key);
            }
        }
    }

    /// Sends an object as soon as its labels are known; until then its last version stays in use.
    /// `was_sent`: an earlier version was sent.
    pub(super) fn send_or_hold(&mut self, key: &ObjectKey, object: Object, was_sent: bool) {
        let Some(label_usage) = &mut self.label_usage else {
            return self.events.push(Event::Apply(object));
        };
        let differs = label_usage.uses(key, &object, was_sent);
        match label_usage.keys(key) {
            Some(_) => label_usage.hold(key, object),
            None => self.events.push(Event::Apply(object)),
        }
        if differs && self.refresh_readiness() {
            self.send_ready();
        } else if self.knows_labels(key) {
            self.send_held(key);
        } else if self.is_complete() {
            self.send_changes(key);
            self.send_substitute(key);
        }
        self.complete_if_listed();
    }

    /// Forgets the labels of an object that is deleted or ignored.
    pub(super) fn forget_labels(&mut self, key: &ObjectKey) {
        let label_usage = self.label_usage.as_mut();
        if label_usage.is_some_and(|label_usage| label_usage.forget(key)) {
            self.update_readiness();
        }
    }

    /// Whether the start need not wait for labels: no object is held, TopologyMaps are in use and
    /// do not have the labels, or Nodes were listed again.
    pub(super) fn can_complete(&self) -> bool {
        let label_usage = self.label_usage.as_ref();
        label_usage.is_none_or(|label_usage| {
            label_usage.held().next().is_none()
                || self.is_read_from_map()
                || label_usage.has_listed_again()
        })
    }

    pub(super) fn send_substitutes(&mut self) {
        let held = self.label_usage.iter().flat_map(LabelUsage::held);
        let held: Vec<ObjectKey> = held.cloned().collect();
        for key in &held {
            self.send_substitute(key);
        }
    }

    /// Sends a substitute for a held Service of which no version was sent.
    fn send_substitute(&mut self, key: &ObjectKey) {
        let label_usage = self.label_usage.as_mut();
        let object = label_usage.and_then(|label_usage| label_usage.first_substitute(key));
        self.events.extend(object.map(Event::Apply));
    }

    /// Sends the changes of a held Service, without its policy, if a version was sent before.
    fn send_changes(&mut self, key: &ObjectKey) {
        let label_usage = self.label_usage.as_ref();
        let object = label_usage.and_then(|label_usage| label_usage.update_substitute(key));
        self.events.extend(object.map(Event::Apply));
    }

    /// Records that a list of Nodes failed or takes long, so that the start need not wait for it.
    pub(crate) fn node_list_late(&mut self) {
        if self.label_usage.as_mut().is_some_and(LabelUsage::mark_late) {
            self.complete_if_listed();
        }
    }

    /// Sends the labels that are in use but not read, if they changed.
    pub(super) fn send_unread(&mut self) {
        let Some(label_usage) = &self.label_usage else {
            return;
        };
        if self.unread != *label_usage.unread() {
            self.unread.clone_from(label_usage.unread());
            self.events.push(Event::Unread(self.unread.clone()));
        }
    }

    /// Records which objects wait for labels now.
    pub(crate) fn observe_waiting(&mut self) {
        let held = self.label_usage.iter().flat_map(LabelUsage::held);
        self.waiting_objects.observe(held.cloned());
    }

    /// Reports the first objects that wait long for labels, if they changed.
    pub(super) fn report_waiting(&mut self) {
        if self.completeness.is_none() {
            return;
        }
        // An object of an administrator does not wait long for TopologyMaps: without its label the
        // agent reads all Nodes. Then objects wait long only if the list is delayed.
        let node_scope = self.node_scope();
        let waits_long = |key: &&ObjectKey| match node_scope {
            NodeScope::Own => {
                label_owner(key) == LabelOwner::Tenant && self.waiting_objects.is_long(key)
            }
            NodeScope::All => self.waiting_objects.is_delayed(),
        };
        let held = self.label_usage.iter().flat_map(LabelUsage::held);
        let held: Vec<ObjectKey> = held.filter(waits_long).take(NAMED).cloned().collect();
        if let Some(named) = self.waiting_objects.set_named(held) {
            let warnings = named.iter().map(unread_warning).collect();
            self.reports.set(WAITING.into(), warnings);
        }
    }

    /// Whether the labels of the newest version of an object are known of every Node.
    fn knows_labels(&self, key: &ObjectKey) -> bool {
        let label_usage = self.label_usage.as_ref();
        label_usage.is_none_or(|label_usage| {
            let keys = label_usage.keys(key);
            keys.is_none_or(|keys| match &self.maps {
                Some(maps) if maps.node_scope == NodeScope::Own => maps.has_labels(keys),
                _ => label_usage.knows(keys),
            })
        })
    }

    /// Sends the held objects whose labels are known now.
    fn send_ready(&mut self) {
        let held = self.label_usage.iter().flat_map(LabelUsage::held);
        let ready: Vec<ObjectKey> = held.filter(|key| self.knows_labels(key)).cloned().collect();
        for key in &ready {
            self.send_held(key);
        }
    }

    /// Sends an object if it is held.
    fn send_held(&mut self, key: &ObjectKey) {
        let label_usage = self.label_usage.as_mut();
        let object = label_usage.and_then(|label_usage| label_usage.mark_sent(key));
        self.events.extend(object.map(Event::Apply));
    }
}

fn warning(gap: &MapGap) -> Warning {
    let message = format!("cannot replace the Nodes: {gap}; until it can, all Nodes are read");
    Warning {
        subject: Subject::Other(REPORT, None),
        code: Code::MapUnfit,
        ..Warning::of_file(&"".into(), 0, message, gap.remedy())
    }
}

fn unread_warning(key: &ObjectKey) -> Warning {
    let message = "uses a label that is not known of the other Nodes yet; the topology settings of \
                   its last version stay in use, and a new Service is served without its policy";
    let remedy = "wait for the next list of Nodes; if Nodes come from the TopologyMap, check that \
                  ipvs-topo-controller runs and may read Services, and whether the map has room \
                  for another label";
    Warning {
        code: Code::LabelUnread,
        ..Warning::of_object(&"".into(), 0, key, message, remedy)
    }
}
