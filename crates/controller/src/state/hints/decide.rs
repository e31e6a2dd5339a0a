//! Decides the hints on the slices of one Service and family.

use std::collections::BTreeMap;

use serde_json::Value;
use topology_core::hints::{HintEvent, HintMode, HintedSlices, Zones, reconcile};
use topology_core::model::ObjectName;

use super::service::ServiceHints;
use super::slice::{Author, Group, Slice, Written};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HintState {
    NotRequested,
    /// Hints by CPU are being written.
    Allocating,
    /// All hints by CPU are written.
    Allocated,
    /// The hints name the zone or node of each endpoint.
    SamePlace,
    /// Hints are impossible, with a code for the reason.
    Refused(&'static str),
    /// The hints belong to another writer.
    Left,
}

impl HintState {
    /// The state without another writer; `done`: every slice has the desired hints.
    fn of(asked: HintMode, event: Option<&HintEvent>, done: bool) -> Self {
        match (asked, event) {
            (HintMode::Nothing, _) => Self::NotRequested,
            (HintMode::SameZone | HintMode::SameNode, _) => Self::SamePlace,
            (HintMode::Auto, Some(HintEvent::Disabled { problem, .. })) => {
                Self::Refused(problem.code())
            }
            (HintMode::Auto, Some(HintEvent::Enabled { .. })) if !done => Self::Allocating,
            (HintMode::Auto, _) => Self::Allocated,
        }
    }
}

#[derive(Debug)]
pub(super) struct HintDecision {
    pub(super) state: HintState,
    /// Why the Service is left to another writer, if it is.
    pub(super) left: Option<String>,
    /// The Event to record when the state changes.
    pub(super) event: Option<HintEvent>,
    /// Slices and their new endpoints.
    pub(super) changes: Vec<(ObjectName, Vec<Value>)>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Known<'h> {
    pub(super) services: &'h BTreeMap<ObjectName, ServiceHints>,
    pub(super) written: &'h BTreeMap<ObjectName, Written>,
    /// Why each is left alone.
    pub(super) left: &'h BTreeMap<Group, String>,
    /// The state of each at the last decision.
    pub(super) states: &'h BTreeMap<Group, HintState>,
}

impl Known<'_> {
    pub(super) fn decide(
        &self,
        group: &Group,
        slices: &[(&ObjectName, &Slice)],
        zones: Option<&Zones>,
    ) -> HintDecision {
        let asked = self
            .services
            .get(&group.0)
            .map_or(HintMode::Nothing, |service| service.wanted);
        let left = self.why_left(group, asked, slices);
        let wanted = if left.is_some() {
            HintMode::Nothing
        } else {
            asked
        };
        // Without a request the allocator gets only slices with our hints, to remove these.
        let ours = slices
            .iter()
            .filter(|(name, slice)| wanted != HintMode::Nothing || self.is_ours(name, slice));
        let mut hinted = HintedSlices {
            keep: ours
                .map(|(name, slice)| slice.to_hint(&name.name))
                .collect(),
            ..HintedSlices::default()
        };
        let before = self.was_allocated(group, asked, slices);
        let event = reconcile(wanted, zones, group.1, before, &mut hinted);
        let change = |(name, slice): &(&ObjectName, &Slice)| {
            let new = hinted.update.iter().find(|new| new.name == name.name)?;
            Some(((*name).clone(), slice.with(new)?))
        };
        let changes: Vec<_> = slices.iter().filter_map(change).collect();
        let state = if left.is_some() {
            HintState::Left
        } else {
            HintState::of(asked, event.as_ref(), changes.is_empty())
        };
        HintDecision {
            state,
            left,
            event,
            changes,
        }
    }

    /// Whether the hints of a slice are ours.
    fn is_ours(&self, name: &ObjectName, slice: &Slice) -> bool {
        let written = || self.written.get(name);
        match slice.author {
            Author::Us => true,
            Author::Other(_) => written().is_some_and(|written| written.is_kept_by(slice)),
            Author::Kubernetes(_) | Author::Declared(_) => false,
        }
    }

    /// Whether the current hints are hints by CPU: by the last decision, or else by the slices.
    fn was_allocated(
        &self,
        group: &Group,
        asked: HintMode,
        slices: &[(&ObjectName, &Slice)],
    ) -> bool {
        let ours =
            |(name, slice): &(&ObjectName, &Slice)| slice.is_hinted() && self.is_ours(name, slice);
        match self.states.get(group) {
            Some(state) => *state == HintState::Allocated,
            None => matches!(asked, HintMode::Auto | HintMode::Nothing) && slices.iter().any(ours),
        }
    }

    fn why_left(
        &self,
        group: &Group,
        asked: HintMode,
        slices: &[(&ObjectName, &Slice)],
    ) -> Option<String> {
        if asked == HintMode::Nothing {
            return None;
        }
        let found = || {
            slices
                .iter()
                .find_map(|(name, slice)| self.other_writer(name, slice))
        };
        self.left.get(group).cloned().or_else(found)
    }

    fn other_writer(&self, name: &ObjectName, slice: &Slice) -> Option<String> {
        let action = match slice.author {
            Author::Kubernetes(_) => "manages",
            Author::Declared(_) => "has applied the endpoints of",
            Author::Other(_) if slice.is_hinted() && !self.is_ours(name, slice) => {
                "wrote the hints on"
            }
            Author::Us | Author::Other(_) => return None,
        };
        let by = slice.author.name();
        Some(format!("{by} {action} EndpointSlice {}", name.name))
    }
}
