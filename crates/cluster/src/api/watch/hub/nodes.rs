//! The Nodes of which the map tells, as events; and what waits until their labels are known.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::atlas::{Atlas, Fitness, Lack, Reading};
use super::interest::Interest;
use super::told::Told;
use super::{Hub, MAPS, NODES};
use crate::api::watch::relist_pace::Asker;
use crate::convert;
use crate::event::Event;
use crate::object::{Kind, Object, ObjectKey};
use crate::source::{State, fingerprint};
use crate::warning::{Code, Subject, Warning};
use crate::yaml::Node;

/// What is said of the map is reported under this name.
const REPORT: &str = "TopologyMap";
/// What waits for labels is reported under this name.
const WAITING: &str = "labels";
/// How many objects that wait are named.
const NAMED: usize = 10;

/// What is asked of the server about objects: anew if it is not what was asked before.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Asked {
    /// The only one that is asked for, if it is not all of them.
    pub(crate) only: Option<Arc<str>>,
    /// How often they were asked for again, for their labels.
    round: u32,
}

impl Hub {
    /// Whether the map can stand for the Nodes; nothing if it shall not.
    pub(crate) fn fitness(&self) -> Option<&Fitness> {
        self.atlas.as_ref().map(|atlas| &atlas.fitness)
    }

    /// What is read of the Nodes.
    pub(crate) fn reading(&self) -> Reading {
        let atlas = self.atlas.as_ref();
        atlas.map_or(Reading::All, |atlas| atlas.reading)
    }

    /// The only Node that is read, if the map tells of the others.
    pub(crate) fn only_node(&self) -> Option<Arc<str>> {
        let atlas = self.atlas.as_ref()?;
        (atlas.reading == Reading::Own).then(|| Arc::clone(atlas.own()))
    }

    /// What is asked of the server about Nodes.
    pub(crate) fn asked_of_nodes(&self) -> Asked {
        Asked {
            only: self.only_node(),
            round: self.interest.as_ref().map_or(0, Interest::round),
        }
    }

    /// Whose objects wait for labels of all Nodes that no list on its way will tell.
    pub(crate) fn asker_for_labels(&self) -> Option<Asker> {
        let is_read = self.inputs.get(NODES).is_some_and(Told::is_listed);
        let interest = self.interest.as_ref();
        interest
            .filter(|_| self.reading() == Reading::All && is_read)
            .and_then(Interest::lacks)
    }

    /// The list that some objects wait for is not asked for yet, as Nodes were listed not long ago.
    pub(crate) fn delay_nodes(&mut self) {
        self.delayed = true;
    }

    /// Asks for a list of Nodes, with the labels that are lacking.
    pub(crate) fn ask_for_nodes(&mut self) {
        self.delayed = false;
        if let Some(interest) = &mut self.interest {
            interest.ask();
        }
    }

    /// Whether everything was read once.
    pub(crate) fn is_complete(&self) -> bool {
        self.completeness.is_some()
    }

    /// From now on `reading` is read of the Nodes. What is known of them stays until that is known.
    pub(crate) fn turn(&mut self, reading: Reading) {
        if let Some(atlas) = &mut self.atlas {
            atlas.reading = reading;
            let interest = self.interest.iter_mut();
            interest.for_each(|interest| interest.turn(atlas.keys()));
        }
        if let Some(nodes) = self.inputs.get_mut(NODES) {
            nodes.unlist();
        }
        if reading == Reading::Own {
            self.sync_all();
            self.release();
        }
    }

    /// Nobody may read the map, if that is the input; or somebody may again.
    pub(crate) fn refused(&mut self, input: super::Number, refused: bool) {
        if let (MAPS, Some(atlas)) = (input, &mut self.atlas) {
            atlas.refused(refused);
            self.judge();
        }
    }

    /// Whether it is the map that tells of this object.
    pub(super) fn is_mapped(&self, key: &ObjectKey) -> bool {
        let own = self.only_node();
        key.kind == Kind::Node && own.is_some_and(|own| key.name.name != own)
    }

    /// A list of Nodes begins. One that names one's own alone says nothing of those of which the map tells.
    pub(super) fn begin_nodes(&mut self) {
        if let Some(interest) = &mut self.interest {
            self.context.others = Some(interest.begin());
        }
        let Some(own) = self.only_node() else { return };
        if let Some(nodes) = self.inputs.get_mut(NODES) {
            nodes.name_all(|name| name.name != own);
        }
    }

    pub(super) fn map_exists(&mut self, node: &Node) {
        let (name, map, warnings) = convert::node_map(node, &mut self.context);
        let key = ObjectKey::global(Kind::Node, &name);
        self.put(MAPS, &key, State::Good(0));
        self.report_on(format!("{REPORT} {name}").into(), warnings);
        let Some(atlas) = &mut self.atlas else { return };
        let changed = atlas.put(&name, map);
        self.map_changed(&changed);
    }

    pub(super) fn map_gone(&mut self, name: &str) {
        self.report_on(format!("{REPORT} {name}").into(), Vec::new());
        let Some(atlas) = &mut self.atlas else { return };
        let changed = atlas.remove(name);
        self.map_changed(&changed);
    }

    /// Tells of the Nodes that changed in a map that was fit before and is.
    fn map_changed(&mut self, changed: &BTreeSet<Arc<str>>) {
        let was_fit = self.fitness() == Some(&Fitness::Fit);
        self.weigh();
        if was_fit && self.is_read_from_map() {
            self.sync(changed);
        }
        self.release();
        self.gate();
    }

    /// A list has ended: that of the map, or one that some objects wait for.
    pub(super) fn nodes_listed(&mut self, input: super::Number) {
        let all = self.reading() == Reading::All;
        match (input, &mut self.interest, &mut self.atlas) {
            (MAPS, _, Some(atlas)) => {
                atlas.listed();
                self.judge();
            }
            (NODES, Some(interest), _) => {
                interest.listed(all);
                self.release();
            }
            _ => {}
        }
    }

    fn is_read_from_map(&self) -> bool {
        self.reading() == Reading::Own && self.fitness() == Some(&Fitness::Fit)
    }

    /// Whether the Nodes are known, from where they are read.
    pub(super) fn knows_nodes(&self) -> bool {
        self.reading() == Reading::All || self.is_read_from_map()
    }

    /// Finds out whether the map is fit, and tells what follows.
    fn judge(&mut self) {
        self.weigh();
        self.release();
        self.gate();
    }

    /// Finds out whether the map is fit. Returns whether that is news.
    fn weigh(&mut self) -> bool {
        let (Some(atlas), Some(interest)) = (&mut self.atlas, &self.interest) else {
            return false;
        };
        let fitness = atlas.judge(interest);
        let is_news = fitness != atlas.fitness;
        if is_news {
            atlas.fitness = fitness;
            self.report_lack();
            if self.is_read_from_map() {
                self.sync_all();
            }
        }
        is_news
    }

    fn report_lack(&mut self) {
        let lack = match self.fitness() {
            Some(Fitness::Lacks(lack)) => Some(warning(lack)),
            _ => None,
        };
        self.report_on(REPORT.into(), lack.into_iter().collect());
    }

    /// Tells of everything in the map, and of what it does not have any more.
    fn sync_all(&mut self) {
        let told = self.inputs.get(NODES).into_iter();
        let told = told.flat_map(|nodes| nodes.names().map(|name| &name.name));
        let mapped = self.atlas.iter().flat_map(Atlas::names);
        let names: BTreeSet<Arc<str>> = told.chain(mapped).cloned().collect();
        self.sync(&names);
    }

    /// Tells what the map says of these Nodes.
    fn sync(&mut self, names: &BTreeSet<Arc<str>>) {
        for name in names {
            let key = ObjectKey::global(Kind::Node, name);
            let Some(atlas) = &self.atlas else { return };
            if name == atlas.own() {
                continue;
            }
            if let Some(node) = atlas.node(name) {
                let object = Object::Node(node.clone());
                if self.put(NODES, &key, State::Good(fingerprint(&object))) {
                    self.batch.events.push(Event::Apply(object));
                }
            } else if let Some(true) = self
                .inputs
                .get_mut(NODES)
                .map(|nodes| nodes.remove(&key.name))
            {
                self.forget(&key);
            }
        }
    }

    /// Tells of an object, as soon as the labels are known that it goes by: until then it is as it was before.
    /// `shown` if an earlier version was told.
    pub(super) fn apply(&mut self, key: &ObjectKey, object: Object, shown: bool) {
        let Some(interest) = &mut self.interest else {
            return self.batch.events.push(Event::Apply(object));
        };
        let differs = interest.uses(key, &object, shown);
        match interest.keys(key) {
            Some(_) => interest.hold(key, object),
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

    /// An object is not there any more, or none of our business.
    pub(super) fn unuse(&mut self, key: &ObjectKey) {
        let interest = self.interest.as_mut();
        if interest.is_some_and(|interest| interest.forget(key)) {
            self.judge();
        }
    }

    /// Whether nothing waits for labels, or everything can begin without what does: the map does not tell them, or Nodes
    /// were listed once more.
    pub(super) fn can_begin(&self) -> bool {
        let interest = self.interest.as_ref();
        interest.is_none_or(|interest| {
            interest.held().next().is_none()
                || self.is_read_from_map()
                || interest.has_listed_again()
        })
    }

    /// Tells of every Service that waits for labels and of which nothing was told.
    pub(super) fn stand_in_for_all(&mut self) {
        let held = self.interest.iter().flat_map(Interest::held);
        let held: Vec<ObjectKey> = held.cloned().collect();
        for key in &held {
            self.stand_in(key);
        }
    }

    /// Tells of a Service that waits for labels, if nothing was told of it.
    fn stand_in(&mut self, key: &ObjectKey) {
        let interest = self.interest.as_mut();
        let object = interest.and_then(|interest| interest.stand_in(key));
        self.batch.events.extend(object.map(Event::Apply));
    }

    /// Tells what is new of a Service that waits for labels, besides its policy, if anything was told of it.
    fn follow(&mut self, key: &ObjectKey) {
        let interest = self.interest.as_ref();
        let object = interest.and_then(|interest| interest.follow(key));
        self.batch.events.extend(object.map(Event::Apply));
    }

    /// A list of Nodes that some objects wait for has failed, or takes long.
    pub(crate) fn nodes_late(&mut self) {
        if self.interest.as_mut().is_some_and(Interest::late) {
            self.gate();
        }
    }

    /// Tells which labels are not read, if they are others than those that were told.
    pub(super) fn tell_unread(&mut self) {
        let Some(interest) = &self.interest else {
            return;
        };
        if self.unread != *interest.unread() {
            self.unread.clone_from(interest.unread());
            self.batch.events.push(Event::Unread(self.unread.clone()));
        }
    }

    /// Names the first objects that wait for labels, if they are others than those that were named.
    pub(super) fn report_waiting(&mut self) {
        if self.completeness.is_none() {
            return;
        }
        // The controller adds the labels of administrators within seconds, those of tenants while there is room; all
        // else waits for a list that is on its way.
        let reading = self.reading();
        let waits_long = |key: &&ObjectKey| match reading {
            Reading::Own => matches!(key.kind, Kind::Service | Kind::TopologyPolicy),
            Reading::All => self.delayed,
        };
        let held = self.interest.iter().flat_map(Interest::held);
        let held: Vec<ObjectKey> = held.filter(waits_long).take(NAMED).cloned().collect();
        if held != self.waiting {
            let warnings = held.iter().map(waits).collect();
            self.waiting = held;
            self.report_on(WAITING.into(), warnings);
        }
    }

    /// Whether the labels are known of every Node that the newest version of an object goes by.
    fn knows_labels(&self, key: &ObjectKey) -> bool {
        let interest = self.interest.as_ref();
        interest.is_none_or(|interest| {
            let keys = interest.keys(key);
            keys.is_none_or(|keys| match &self.atlas {
                Some(atlas) if atlas.reading == Reading::Own => atlas.tells_all(keys),
                _ => interest.knows(keys),
            })
        })
    }

    /// Tells of what has waited long enough.
    fn release(&mut self) {
        let held = self.interest.iter().flat_map(Interest::held);
        let ready: Vec<ObjectKey> = held.filter(|key| self.knows_labels(key)).cloned().collect();
        for key in &ready {
            self.tell(key);
        }
    }

    /// Tells of an object if it is held.
    fn tell(&mut self, key: &ObjectKey) {
        let interest = self.interest.as_mut();
        let object = interest.and_then(|interest| interest.tell(key));
        self.batch.events.extend(object.map(Event::Apply));
    }
}

fn warning(lack: &Lack) -> Warning {
    let message =
        format!("cannot stand for the Nodes: {lack}; until it can, the Nodes themselves are read");
    Warning {
        subject: Subject::Other(REPORT, None),
        code: Code::MapUnfit,
        ..Warning::of_file(&"".into(), 0, message, lack.remedy())
    }
}

fn waits(key: &ObjectKey) -> Warning {
    let message = "uses a label that is not known of the other Nodes yet; what its last version asked stays in use, and a \
                   Service that has none is served without its policy";
    let remedy = "wait for the next list of Nodes, or for the map to have the label (the controller's --label-keys)";
    Warning {
        code: Code::LabelUnread,
        ..Warning::of_object(&"".into(), 0, key, message, remedy)
    }
}
