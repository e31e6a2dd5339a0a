//! What the API server has of the objects that only the controller writes.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::net::IpAddr;

use serde_json::Value;
use topology_core::model::ObjectName;

use super::queue::NameQueue;
use crate::state::value::text;

/// The objects of one kind.
#[derive(Debug, Default)]
pub(super) struct WrittenObjects {
    objects: BTreeMap<ObjectName, WrittenObject>,
    /// The names of objects that may differ from the desired ones.
    pub(super) changed: NameQueue,
}

impl WrittenObjects {
    pub(super) fn apply(&mut self, name: ObjectName, object: &Value) {
        self.objects.insert(name.clone(), WrittenObject::of(object));
        self.changed.push(name);
    }

    pub(super) fn delete(&mut self, name: &ObjectName) {
        self.objects.remove(name);
        self.changed.push(name.clone());
    }

    pub(super) fn get(&self, name: &ObjectName) -> Option<&WrittenObject> {
        self.objects.get(name)
    }

    pub(super) fn names(&self) -> BTreeSet<ObjectName> {
        self.objects.keys().cloned().collect()
    }
}

#[derive(Debug)]
pub(super) struct WrittenObject {
    pub(super) resource_version: String,
    /// Of the spec and the owner.
    fingerprint: u64,
    /// The addresses in a PodMap, sorted.
    addresses: Box<[IpAddr]>,
}

impl WrittenObject {
    fn of(object: &Value) -> Self {
        Self {
            resource_version: text(object, "/metadata/resourceVersion").to_owned(),
            fingerprint: fingerprint(object),
            addresses: addresses(object),
        }
    }

    pub(super) fn addresses(&self) -> impl Iterator<Item = IpAddr> {
        self.addresses.iter().copied()
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
