//! Joins a watched resource with its known objects.

use super::known_objects::KnownObjects;
use crate::api::watch::resources::WatchedResource;

#[derive(Debug)]
pub(super) struct Watched {
    pub(super) resource: WatchedResource,
    pub(super) known: KnownObjects,
}

impl Watched {
    pub(super) fn new(resource: &WatchedResource) -> Self {
        Self {
            resource: *resource,
            known: KnownObjects::default(),
        }
    }
}
