//! What the API server has of an object that only the controller writes.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::net::IpAddr;

use serde_json::Value;

use crate::state::value::text;

#[derive(Debug)]
pub(super) struct WrittenObject {
    pub(super) resource_version: String,
    /// Of the spec and the owner.
    fingerprint: u64,
    /// The addresses in a PodMap, sorted.
    addresses: Box<[IpAddr]>,
}

impl WrittenObject {
    pub(super) fn of(object: &Value) -> Self {
        Self {
            resource_version: text(object, "/metadata/resourceVersion").to_owned(),
            fingerprint: fingerprint(object),
            addresses: addresses(object),
        }
    }

    pub(super) fn has_address(&self, address: IpAddr) -> bool {
        self.addresses.binary_search(&address).is_ok()
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

/// The addresses of `spec.pods`; none of a PodLocator.
fn addresses(object: &Value) -> Box<[IpAddr]> {
    let pods = object.pointer("/spec/pods").and_then(Value::as_object);
    let addresses = pods.into_iter().flat_map(|pods| pods.keys());
    let mut addresses: Vec<IpAddr> = addresses.filter_map(|it| it.parse().ok()).collect();
    addresses.sort_unstable();
    addresses.into()
}
