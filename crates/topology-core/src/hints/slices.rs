//! The parts of EndpointSlices that hints depend on.

use std::sync::Arc;

use crate::model::{Endpoint, EndpointSlice, Hints};

/// The slices of one Service and family that a controller is about to write.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HintedSlices {
    /// Slices to create.
    pub create: Vec<HintedSlice>,
    /// Slices to update.
    pub update: Vec<HintedSlice>,
    /// Unchanged slices. Those whose hints must change move to `update`.
    pub keep: Vec<HintedSlice>,
}

/// A slice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HintedSlice {
    /// The name, for the controller that writes the slice.
    pub name: Arc<str>,
    /// The endpoints of the slice.
    pub members: Vec<HintedEndpoint>,
}

/// An endpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HintedEndpoint {
    /// `nodeName`.
    pub node: Option<Arc<str>>,
    /// `zone`.
    pub zone: Option<Arc<str>>,
    /// `conditions.ready`. Unlike in a proxy, an absent one counts as not ready.
    pub ready: Option<bool>,
    /// `hints`.
    pub hints: Option<Hints>,
}

impl HintedSlices {
    /// The number of ready endpoints.
    pub(super) fn ready(&self) -> usize {
        let slices = self.create.iter().chain(&self.update).chain(&self.keep);
        slices
            .flat_map(|slice| &slice.members)
            .filter(|member| member.is_ready())
            .count()
    }

    /// The slices that are written anyway, in order.
    pub(super) fn written(&mut self) -> impl Iterator<Item = &mut HintedSlice> {
        self.create.iter_mut().chain(&mut self.update)
    }

    /// Moves the slices for which `needs_it` is true from `keep` to `update`.
    pub(super) fn move_to_update(&mut self, needs_it: impl FnMut(&mut HintedSlice) -> bool) {
        self.update.extend(self.keep.extract_if(.., needs_it));
    }

    /// Removes all hints.
    pub(super) fn clear(&mut self) {
        self.move_to_update(|slice| slice.members.iter().any(|member| member.hints.is_some()));
        for member in self.written().flat_map(|slice| &mut slice.members) {
            member.hints = None;
        }
    }
}

impl HintedSlice {
    /// The slice without its hints.
    pub(super) fn without_hints(slice: &EndpointSlice) -> Self {
        Self {
            name: Arc::clone(&slice.name.name),
            members: slice
                .endpoints
                .iter()
                .map(HintedEndpoint::without_hints)
                .collect(),
        }
    }
}

impl HintedEndpoint {
    fn without_hints(endpoint: &Endpoint) -> Self {
        Self {
            node: endpoint.node.clone(),
            zone: endpoint.zone.clone(),
            ready: Some(endpoint.ready),
            hints: None,
        }
    }

    /// Whether `conditions.ready` is true.
    pub(super) fn is_ready(&self) -> bool {
        self.ready == Some(true)
    }

    /// The zone, unless it is empty.
    pub(super) fn zone(&self) -> Option<&Arc<str>> {
        self.zone.as_ref().filter(|zone| !zone.is_empty())
    }

    /// Sets the hints to one zone.
    pub(super) fn hint_zone(&mut self, zone: &Arc<str>) {
        self.hints = Some(Hints {
            zones: vec![Arc::clone(zone)],
            nodes: Vec::new(),
        });
    }
}
