//! Sends events for Nodes of `TopologyMap` objects, and holds objects until their labels are known.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::known_objects::KnownObjects;
use super::{Reflector, ResourceId};
use crate::api::watch::node_source::LabelOwner;
use crate::api::watch::node_source::label_usage::LabelUsage;
use crate::api::watch::node_source::topology_map::{MapGap, MapReadiness, NodeScope, TopologyMaps};
use crate::convert;
use crate::event::Event;
use crate::object::{Kind, Object, ObjectKey};
use crate::source::{State, fingerprint};
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

    pub(crate) fn reading(&self) -> NodeScope {
        let maps = self.maps.as_ref();
        maps.map_or(NodeScope::All, |maps| maps.reading)
    }

    /// The agent's own Node, if the others come from TopologyMaps.
    pub(crate) fn only_node(&self) -> Option<Arc<str>> {
        let maps = self.maps.as_ref()?;
        (maps.reading == NodeScope::Own).then(|| Arc::clone(maps.own()))
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
            .filter(|_| self.reading() == NodeScope::All && is_read)
            .and_then(LabelUsage::lacks)
    }

    /// Records that the list which objects wait for is delayed, because the last was recent.
    pub(crate) fn delay_nodes(&mut self) {
        self.delayed = true;
    }

    pub(crate) fn ask_for_nodes(&mut self) {
        self.delayed = false;
        if let Some(label_usage) = &mut self.label_usage {
            label_usage.next_request();
        }
    }

    /// Whether `Complete` was sent.
    pub(crate) fn is_complete(&self) -> bool {
        self.completeness.is_some()
    }

    /// Switches the Nodes that are read. Known Nodes stay until the new source is listed.
    pub(crate) fn read_nodes(&mut self, reading: NodeScope) {
        if let Some(maps) = &mut self.maps {
            maps.reading = reading;
            let label_usage = self.label_usage.iter_mut();
            label_usage.for_each(|label_usage| label_usage.turn(maps.keys()));
        }
        if let Some(nodes) = self.known_mut(ResourceId::NODES) {
            nodes.unlist();
        }
        if reading == NodeScope::Own {
            self.sync_all();
            self.release();
        }
    }

    /// Records whether the API server refuses to serve a resource; only TopologyMaps matter.
    pub(crate) fn refused(&mut self, id: ResourceId, refused: bool) {
        if let (ResourceId::TopologyMaps, Some(maps)) = (id, &mut self.maps) {
            maps.refused(refused);
            self.judge();
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
            nodes.name_all(|name| name.name != own);
        }
    }

    pub(super) fn map_exists(&mut self, node: &Node) {
        let (name, map, warnings) = convert::node_map(node, &mut self.context);
        let key = ObjectKey::global(Kind::Node, &name);
        self.put(ResourceId::TopologyMaps, &key, State::Good(0));
        self.report_on(format!("{REPORT} {name}").into(), warnings);
        let Some(maps) = &mut self.maps else { return };
        let changed = maps.put(&name, map);
        self.map_changed(&changed);
    }

    pub(super) fn map_gone(&mut self, name: &str) {
        self.report_on(format!("{REPORT} {name}").into(), Vec::new());
        let Some(maps) = &mut self.maps else { return };
        let changed = maps.remove(name);
        self.map_changed(&changed);
    }

    /// Sends the changed Nodes, if the TopologyMaps were ready before and still are.
    fn map_changed(&mut self, changed: &BTreeSet<Arc<str>>) {
        let was_fit = self.readiness() == Some(&MapReadiness::Ready);
        self.weigh();
        if was_fit && self.is_read_from_map() {
            self.sync(changed);
        }
        self.release();
        self.gate();
    }

    /// Ends a list of TopologyMaps or Nodes; ignores other resources.
    pub(super) fn nodes_listed(&mut self, id: ResourceId) {
        let all = self.reading() == NodeScope::All;
        match (id, &mut self.label_usage, &mut self.maps) {
            (ResourceId::TopologyMaps, _, Some(maps)) => {
                maps.listed();
                self.judge();
            }
            (ResourceId::NODES, Some(label_usage), _) => {
                label_usage.listed(all);
                self.release();
            }
            _ => {}
        }
    }

    fn is_read_from_map(&self) -> bool {
        self.reading() == NodeScope::Own && self.readiness() == Some(&MapReadiness::Ready)
    }

    /// Whether the source of Nodes is usable. TopologyMaps must be ready.
    pub(super) fn knows_nodes(&self) -> bool {
        self.reading() == NodeScope::All || self.is_read_from_map()
    }

    /// Checks the readiness of the TopologyMaps, and sends the events that depend on it.
    fn judge(&mut self) {
        self.weigh();
        self.release();
        self.gate();
    }

    /// Checks the readiness of the TopologyMaps. Returns whether it changed.
    fn weigh(&mut self) -> bool {
        let (Some(maps), Some(label_usage)) = (&mut self.maps, &self.label_usage) else {
            return false;
        };
        let readiness = maps.judge(label_usage);
        let is_news = readiness != maps.readiness;
        if is_news {
            maps.readiness = readiness;
            self.report_lack();
            if self.is_read_from_map() {
                self.sync_all();
            }
        }
        is_news
    }

    fn report_lack(&mut self) {
        let lack = match self.readiness() {
            Some(MapReadiness::Missing(lack)) => Some(warning(lack)),
            _ => None,
        };
        self.report_on(REPORT.into(), lack.into_iter().collect());
    }

    /// Sends all Nodes of the TopologyMaps, and removes the Nodes that these no longer have.
    fn sync_all(&mut self) {
        let told = self.known(ResourceId::NODES).into_iter();
        let told = told.flat_map(|nodes| nodes.names().map(|name| &name.name));
        let mapped = self.maps.iter().flat_map(TopologyMaps::names);
        let names: BTreeSet<Arc<str>> = told.chain(mapped).cloned().collect();
        self.sync(&names);
    }

    /// Sends these Nodes as the TopologyMaps have them.
    fn sync(&mut self, names: &BTreeSet<Arc<str>>) {
        for name in names {
            let key = ObjectKey::global(Kind::Node, name);
            let Some(maps) = &self.maps else { return };
            if name == maps.own() {
                continue;
            }
            if let Some(node) = maps.node(name) {
                let object = Object::Node(node.clone());
                if self.put(ResourceId::NODES, &key, State::Good(fingerprint(&object))) {
                    self.batch.events.push(Event::Apply(object));
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
    /// `shown`: an earlier version was sent.
    pub(super) fn apply(&mut self, key: &ObjectKey, object: Object, shown: bool) {
        let Some(label_usage) = &mut self.label_usage else {
            return self.batch.events.push(Event::Apply(object));
        };
        let differs = label_usage.uses(key, &object, shown);
        match label_usage.keys(key) {
            Some(_) => label_usage.hold(key, object),
            None => self.batch.events.push(Event::Apply(object)),
        }
        if differs && self.weigh() {
            self.release();
        } else if self.knows_labels(key) {
            self.tell(key);
        } else if self.is_complete() {
            self.follow(key);
            self.stand_in(key);
        }
        self.gate();
    }

    /// Forgets the labels of an object that is deleted or ignored.
    pub(super) fn unuse(&mut self, key: &ObjectKey) {
        let label_usage = self.label_usage.as_mut();
        if label_usage.is_some_and(|label_usage| label_usage.forget(key)) {
            self.judge();
        }
    }

    /// Whether the start need not wait for labels: no object is held, TopologyMaps are in use and
    /// do not have the labels, or Nodes were listed again.
    pub(super) fn can_begin(&self) -> bool {
        let label_usage = self.label_usage.as_ref();
        label_usage.is_none_or(|label_usage| {
            label_usage.held().next().is_none()
                || self.is_read_from_map()
                || label_usage.has_listed_again()
        })
    }

    pub(super) fn stand_in_for_all(&mut self) {
        let held = self.label_usage.iter().flat_map(LabelUsage::held);
        let held: Vec<ObjectKey> = held.cloned().collect();
        for key in &held {
            self.stand_in(key);
        }
    }

    /// Sends a substitute for a held Service of which no version was sent.
    fn stand_in(&mut self, key: &ObjectKey) {
        let label_usage = self.label_usage.as_mut();
        let object = label_usage.and_then(|label_usage| label_usage.stand_in(key));
        self.batch.events.extend(object.map(Event::Apply));
    }

    /// Sends the changes of a held Service, without its policy, if a version was sent before.
    fn follow(&mut self, key: &ObjectKey) {
        let label_usage = self.label_usage.as_ref();
        let object = label_usage.and_then(|label_usage| label_usage.follow(key));
        self.batch.events.extend(object.map(Event::Apply));
    }

    /// Records that a list of Nodes failed or takes long, so that the start need not wait for it.
    pub(crate) fn node_list_late(&mut self) {
        if self.label_usage.as_mut().is_some_and(LabelUsage::late) {
            self.gate();
        }
    }

    /// Sends the labels that are in use but not read, if they changed.
    pub(super) fn tell_unread(&mut self) {
        let Some(label_usage) = &self.label_usage else {
            return;
        };
        if self.unread != *label_usage.unread() {
            self.unread.clone_from(label_usage.unread());
            self.batch.events.push(Event::Unread(self.unread.clone()));
        }
    }

    /// Reports the first objects that wait for labels, if they changed.
    pub(super) fn report_waiting(&mut self) {
        if self.completeness.is_none() {
            return;
        }
        // The controller adds labels of administrators within seconds, so only tenants may wait
        // long for TopologyMaps. Without these, objects wait long only if the list is delayed.
        let reading = self.reading();
        let waits_long = |key: &&ObjectKey| match reading {
            NodeScope::Own => matches!(key.kind, Kind::Service | Kind::TopologyPolicy),
            NodeScope::All => self.delayed,
        };
        let held = self.label_usage.iter().flat_map(LabelUsage::held);
        let held: Vec<ObjectKey> = held.filter(waits_long).take(NAMED).cloned().collect();
        if held != self.waiting {
            let warnings = held.iter().map(waits).collect();
            self.waiting = held;
            self.report_on(WAITING.into(), warnings);
        }
    }

    /// Whether the labels of the newest version of an object are known of every Node.
    fn knows_labels(&self, key: &ObjectKey) -> bool {
        let label_usage = self.label_usage.as_ref();
        label_usage.is_none_or(|label_usage| {
            let keys = label_usage.keys(key);
            keys.is_none_or(|keys| match &self.maps {
                Some(maps) if maps.reading == NodeScope::Own => maps.tells_all(keys),
                _ => label_usage.knows(keys),
            })
        })
    }

    /// Sends the held objects whose labels are known now.
    fn release(&mut self) {
        let held = self.label_usage.iter().flat_map(LabelUsage::held);
        let ready: Vec<ObjectKey> = held.filter(|key| self.knows_labels(key)).cloned().collect();
        for key in &ready {
            self.tell(key);
        }
    }

    /// Sends an object if it is held.
    fn tell(&mut self, key: &ObjectKey) {
        let label_usage = self.label_usage.as_mut();
        let object = label_usage.and_then(|label_usage| label_usage.tell(key));
        self.batch.events.extend(object.map(Event::Apply));
    }
}

fn warning(lack: &MapGap) -> Warning {
    let message =
        format!("cannot replace the Nodes: {lack}; until it can, the agent reads all Nodes");
    Warning {
        subject: Subject::Other(REPORT, None),
        code: Code::MapUnfit,
        ..Warning::of_file(&"".into(), 0, message, lack.remedy())
    }
}

fn waits(key: &ObjectKey) -> Warning {
    let message = "uses a label that is not known of the other Nodes yet; the topology settings of \
                   its last version stay in use, and a new Service is served without its policy";
    let remedy = "wait for the next list of Nodes, or until the TopologyMap has the label (the \
                  controller's --label-keys)";
    Warning {
        code: Code::LabelUnread,
        ..Warning::of_object(&"".into(), 0, key, message, remedy)
    }
}
