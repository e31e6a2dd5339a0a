//! Writes hints on endpoints for which Kubernetes writes no hints. Only with `--write-hints`.
//!
//! # Which slices
//!
//! kube-controller-manager creates the slices of every Service with a selector, and writes their
//! hints itself: the watch excludes these slices. Slices that it mirrors from `Endpoints` objects
//! have no zones and are left alone, too. The remaining slices belong to other writers, for
//! Services without a selector.
//!
//! # How hints are written
//!
//! For the API server `endpoints` is one list: no writer can own the hints of a single endpoint,
//! and server-side apply would have to declare every address as ours. So a merge patch sets the
//! list as it was read, with new hints, and names `metadata.resourceVersion`: a change since then
//! is a conflict and is never overwritten. The same hints are written only once for the same
//! endpoints, whatever the API server stored.
//!
//! # Foreign hints
//!
//! `metadata.managedFields` names the last writer of the list. Hints are ours if we are the last
//! writer, or if the last writer kept ours; all other hints are foreign. The controller leaves a
//! Service alone, and removes our hints, if one of its slices
//!
//! - is mirrored, or its endpoints were applied (server-side apply: its writer would find the list
//!   changed);
//! - has foreign hints;
//! - has lost or changed our hints in the first generation after our write, with the same
//!   endpoints. A writer that changes the endpoints and drops the hints only updates its endpoints,
//!   so these get hints again.
//!
//! This ends when the Service no longer requests hints. A new leader may try each slice once more.

mod decide;
mod service;
mod slice;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use topology_core::hints::{HintMode, Zones};
use topology_core::model::ObjectName;

use super::collection::Collection;
use super::value;
use super::write::{Write, WriteKind};
use crate::event_recorder::{HINTS_LEFT, Key};
use decide::{HintDecision, HintState, Known};
use service::ServiceHints;
use slice::{Group, Slice, Written};

/// An Event to record about a Service or a `ClusterTopologyPolicy`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewEvent {
    pub key: Key,
    /// The `metadata.uid` of the object, if known.
    pub uid: Option<String>,
    /// Milliseconds since 1970, for Events of the first decision: the same for every leader.
    pub since: Option<i64>,
    pub note: String,
}

/// Number of Services, counted per family, by the state of their hints.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HintCounts {
    pub written: usize,
    pub refused: usize,
    pub left: usize,
}

#[derive(Debug, Default)]
pub(super) struct SliceHints {
    listed: BTreeSet<Collection>,
    services: BTreeMap<ObjectName, ServiceHints>,
    slices: BTreeMap<ObjectName, Slice>,
    written: BTreeMap<ObjectName, Written>,
    /// Why each is left alone.
    left: BTreeMap<Group, String>,
    /// The state of each at the last decision.
    states: BTreeMap<Group, HintState>,
    /// The slices whose endpoints differ from the desired ones.
    changes: Vec<(ObjectName, Vec<Value>)>,
}

impl SliceHints {
    /// Records a Service or slice. Returns whether the hints may differ.
    pub(super) fn apply(&mut self, collection: Collection, object: &Value) -> bool {
        let name = value::name(object);
        if collection == Collection::Services {
            let service = ServiceHints::read(object);
            return self.services.insert(name, service) != Some(service);
        }
        let Some(slice) = Slice::read(object) else {
            return self.delete(collection, &name);
        };
        let is_undone = |written: &Written| written.is_undone_by(&slice);
        if self.written.get(&name).is_some_and(is_undone) {
            let by = slice.author.name();
            let why = format!("{by} changed the hints on EndpointSlice {}", name.name);
            self.left.insert(slice.group(), why);
            self.written.remove(&name);
        }
        let is_changed = self.slices.get(&name) != Some(&slice);
        self.slices.insert(name, slice);
        is_changed
    }

    /// Records a deletion. Returns whether the hints may differ.
    pub(super) fn delete(&mut self, collection: Collection, name: &ObjectName) -> bool {
        if collection == Collection::Services {
            return self.services.remove(name).is_some();
        }
        self.written.remove(name);
        self.slices.remove(name).is_some()
    }

    pub(super) fn names(&self, collection: Collection) -> BTreeSet<ObjectName> {
        if collection == Collection::Services {
            self.services.keys().cloned().collect()
        } else {
            self.slices.keys().cloned().collect()
        }
    }

    pub(super) fn listed(&mut self, collection: Collection) {
        self.listed.insert(collection);
    }

    pub(super) fn record_write(&mut self, body: &Value, answer: &Value) {
        if let Some(slice) = Slice::read(answer) {
            let written = Written::new(value::list(body, "/endpoints").to_vec(), slice);
            self.written.insert(value::name(answer), written);
        }
    }

    pub(super) fn forget(&mut self) {
        self.changes.clear();
        self.written.clear();
        self.left.clear();
        self.states.clear();
    }

    /// Whether any Service requests hints that depend on Nodes.
    pub(super) fn needs_zones(&self) -> bool {
        let mut all = self.services.values();
        all.any(|service| service.wanted == HintMode::Auto)
    }

    pub(super) fn counts(&self) -> HintCounts {
        let mut count = HintCounts::default();
        for state in self.states.values() {
            match state {
                HintState::NotRequested | HintState::Allocating => {}
                HintState::Allocated | HintState::SamePlace => count.written += 1,
                HintState::Refused(_) => count.refused += 1,
                HintState::Left => count.left += 1,
            }
        }
        count
    }

    /// Decides again; returns the Events to record.
    pub(super) fn decide(&mut self, zones: Option<&Zones>) -> Vec<NewEvent> {
        let decisions = self.decisions(zones);
        let groups: BTreeSet<Group> = decisions.iter().map(|(group, _)| group.clone()).collect();
        self.states.retain(|group, _| groups.contains(group));
        self.left.retain(|group, _| groups.contains(group));
        self.changes.clear();
        let mut all: Vec<NewEvent> = Vec::new();
        for (group, mut decision) in decisions {
            self.changes.append(&mut decision.changes);
            match &decision.left {
                Some(why) => drop(self.left.insert(group.clone(), why.clone())),
                None => drop(self.left.remove(&group)),
            }
            let before = self.states.insert(group.clone(), decision.state);
            if before == Some(decision.state) {
                continue;
            }
            if let Some(event) = self.event(&group.0, &decision, before.is_none()) {
                // Both families of a Service share one Event.
                match all.last_mut().filter(|last| last.key == event.key) {
                    Some(last) => last.note.extend(["; ", &event.note]),
                    None => all.push(event),
                }
            }
        }
        all
    }

    fn event(
        &self,
        service: &ObjectName,
        decision: &HintDecision,
        is_first: bool,
    ) -> Option<NewEvent> {
        let known = self.services.get(service)?;
        let (reason, note) = match (&decision.left, &decision.event) {
            _ if decision.state == HintState::Allocating => return None,
            (Some(why), _) => (HINTS_LEFT, format!("no hints are written: {why}")),
            (None, Some(event)) => (event.reason(), event.to_string()),
            (None, None) => return None,
        };
        Some(NewEvent {
            key: (service.clone(), reason),
            uid: None,
            since: is_first.then_some(known.created),
            note,
        })
    }

    pub(super) fn plan(&self) -> Vec<Write> {
        let writes = self.changes.iter();
        writes
            .filter_map(|(name, endpoints)| self.write(name, endpoints))
            .collect()
    }

    fn write(&self, name: &ObjectName, endpoints: &[Value]) -> Option<Write> {
        let slice = self.slices.get(name)?;
        let written = self.written.get(name);
        if written.is_some_and(|written| written.is_answer_to(endpoints, slice)) {
            return None;
        }
        Some(Write {
            collection: Collection::Slices,
            name: name.clone(),
            kind: WriteKind::Merge,
            body: json!({ "metadata": { "resourceVersion": slice.version }, "endpoints": endpoints }),
            is_transition: false,
        })
    }

    /// The decisions; none before the first lists are complete.
    fn decisions(&self, zones: Option<&Zones>) -> Vec<(Group, HintDecision)> {
        let mut groups: BTreeMap<Group, Vec<(&ObjectName, &Slice)>> = BTreeMap::new();
        if Collection::FOR_HINTS
            .iter()
            .all(|collection| self.listed.contains(collection))
        {
            for (name, slice) in &self.slices {
                groups.entry(slice.group()).or_default().push((name, slice));
            }
        }
        let known = Known {
            services: &self.services,
            written: &self.written,
            left: &self.left,
            states: &self.states,
        };
        let decide = |(group, slices): (Group, Vec<_>)| {
            let decision = known.decide(&group, &slices, zones);
            (group, decision)
        };
        groups.into_iter().map(decide).collect()
    }
}
