//! Joins a watched resource with what was reported of its objects.

use super::known_objects::KnownObjects;
use crate::api::watch::resources::WatchedResource;

/// A watched resource, and what was reported of its objects.
#[derive(Debug)]
pub(super) struct Watched {
    pub(super) resource: WatchedResource,
    pub(super) known: KnownObjects,
}

impl Watched {
    /// Nothing was reported yet.
    pub(super) fn new(resource: &WatchedResource) -> Self {
        Self {
            resource: *resource,
            known: KnownObjects::default(),
        }
    }
}
