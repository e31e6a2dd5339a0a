//! The slices of one Service and family, as far as hints go.

use std::sync::Arc;

use crate::model::{Endpoint, EndpointSlice, Hints};

/// What a controller is about to do with the slices of one Service and family.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HintedSlices {
    /// Those it will create.
    pub create: Vec<HintedSlice>,
    /// Those it will write again.
    pub update: Vec<HintedSlice>,
    /// Those it has no reason to touch; the ones whose hints must change move to `update`.
    pub keep: Vec<HintedSlice>,
}

/// A slice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HintedSlice {
    /// Its name, for whoever writes it.
    pub name: Arc<str>,
    /// Its endpoints.
    pub members: Vec<HintedEndpoint>,
}

/// An endpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HintedEndpoint {
    /// `nodeName`.
    pub node: Option<Arc<str>>,
    /// `zone`.
    pub zone: Option<Arc<str>>,
    /// `conditions.ready`; here an absent one counts as not ready, unlike in a proxy.
    pub ready: Option<bool>,
    /// `hints`.
    pub hints: Option<Hints>,
}

impl HintedSlices {
    /// Ready endpoints.
    pub(super) fn ready(&self) -> usize {
        let slices = self.create.iter().chain(&self.update).chain(&self.keep);
        slices
            .flat_map(|slice| &slice.members)
            .filter(|member| member.is_ready())
            .count()
    }

    /// Those that are written anyhow, in order.
    pub(super) fn written(&mut self) -> impl Iterator<Item = &mut HintedSlice> {
        self.create.iter_mut().chain(&mut self.update)
    }

    /// Moves the slices that need it from those that are kept to those that are written.
    pub(super) fn pull(&mut self, needs_it: impl FnMut(&mut HintedSlice) -> bool) {
        self.update.extend(self.keep.extract_if(.., needs_it));
    }

    /// Takes all hints away.
    pub(super) fn clear(&mut self) {
        self.pull(|slice| slice.members.iter().any(|member| member.hints.is_some()));
        for member in self.written().flat_map(|slice| &mut slice.members) {
            member.hints = None;
        }
    }
}

impl HintedSlice {
    /// The slice as if it had no hints.
    pub(super) fn fresh(slice: &EndpointSlice) -> Self {
        Self {
            name: Arc::clone(&slice.name.name),
            members: slice.endpoints.iter().map(HintedEndpoint::fresh).collect(),
        }
    }
}

impl HintedEndpoint {
    fn fresh(endpoint: &Endpoint) -> Self {
        Self {
            node: endpoint.node.clone(),
            zone: endpoint.zone.clone(),
            ready: Some(endpoint.ready),
            hints: None,
        }
    }

    /// Whether it is said to be ready.
    pub(super) fn is_ready(&self) -> bool {
        self.ready == Some(true)
    }

    /// Its zone, unless it is empty.
    pub(super) fn zone(&self) -> Option<&Arc<str>> {
        self.zone.as_ref().filter(|zone| !zone.is_empty())
    }

    /// Hints it for one zone.
    pub(super) fn hint_zone(&mut self, zone: &Arc<str>) {
        self.hints = Some(Hints {
            zones: vec![Arc::clone(zone)],
            nodes: Vec::new(),
        });
    }
}
