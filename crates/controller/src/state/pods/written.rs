//! What the API server has of an object that only the controller writes.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use serde_json::Value;

use crate::state::value::text;

#[derive(Debug)]
pub(super) struct WrittenObject {
    pub(super) resource_version: String,
    /// Of the spec and the owner.
    fingerprint: u64,
}

impl WrittenObject {
    pub(super) fn of(object: &Value) -> Self {
        Self {
            resource_version: text(object, "/metadata/resourceVersion").to_owned(),
            fingerprint: fingerprint(object),
        }
    }

    pub(super) fn has_content_of(&self, object: &Value) -> bool {
        self.fingerprint == fingerprint(object)
    }
}

fn fingerprint(object: &Value) -> u64 {
    let mut hasher = DefaultHasher::new();
    let spec = object.get("spec").map(ToString::to_string);
    spec.hash(&mut hasher);
    text(object, "/metadata/ownerReferences/0/uid").hash(&mut hasher);
    hasher.finish()
}
