//! Plans `PodMap` and `PodLocator` objects: where Pods are.
//!
//! A change costs the Pods and Nodes that it names: they wait in a queue until their objects are as desired. Of an
//! object only the version and a fingerprint are kept.

mod address_claims;
mod address_conflict;
mod planned;
mod pod;
mod queue;
#[cfg(test)]
mod tests;
mod written;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::Hash;
use std::net::IpAddr;

use crd::{MAX_LOCATOR_ADDRESSES, MAX_POD_ADDRESSES, PodLocatorSpec, PodMapSpec};
use serde_json::{Value, json};
use topology_core::model::ObjectName;

use super::collection::Collection;
use super::observed::Observed;
use super::value;
use super::whole_object::write_whole;
use super::write::{Wait, Write, WriteKind};
use address_claims::AddressClaims;
pub use address_conflict::AddressConflict;
use planned::Planned;
use pod::PodInfo;
use written::{WrittenObject, WrittenObjects};

/// The limit of writes of each kind in one plan.
const MOST_WRITES: usize = 100;

#[derive(Debug, Default)]
pub(super) struct PodLocations {
    pods: BTreeMap<ObjectName, PodInfo>,
    of_node: HashMap<String, BTreeSet<ObjectName>>,
    claims: AddressClaims,
    /// Whether the order of the claims counts: not after a start, and not after another replica may have decided.
    is_settled: bool,
    maps: WrittenObjects,
    locators: WrittenObjects,
    /// The labels in the locators.
    keys: Vec<String>,
}

impl PodLocations {
    /// Records a Pod, or an object that the controller writes.
    pub(super) fn apply(&mut self, collection: Collection, object: &Value) {
        let name = value::name(object);
        match self.written_mut(collection) {
            Some(written) => written.apply(name, object),
            None => self.set(name, PodInfo::of(object)),
        }
    }

    pub(super) fn delete(&mut self, collection: Collection, name: &ObjectName) {
        match self.written_mut(collection) {
            Some(written) => written.delete(name),
            None => self.set(name.clone(), None),
        }
    }

    pub(super) fn names(&self, collection: Collection) -> BTreeSet<ObjectName> {
        if collection == Collection::PodMaps {
            self.maps.names()
        } else if collection == Collection::PodLocators {
            self.locators.names()
        } else {
            self.pods.keys().cloned().collect()
        }
    }

    /// The objects of a collection that the controller writes; `None` for Pods.
    fn written_mut(&mut self, collection: Collection) -> Option<&mut WrittenObjects> {
        if collection == Collection::PodMaps {
            Some(&mut self.maps)
        } else if collection == Collection::PodLocators {
            Some(&mut self.locators)
        } else {
            None
        }
    }

    /// Records that the labels of a Node changed, or that it was added or deleted.
    pub(super) fn node_changed(&mut self, node: &str) {
        self.maps.changed.push(map_name(node));
        for pod in self.of_node.get(node).into_iter().flatten() {
            self.locators.changed.push(pod.clone());
        }
    }

    /// Replaces what is known of a Pod; `None` if it has no address of its own any more.
    fn set(&mut self, name: ObjectName, pod: Option<PodInfo>) {
        if self.pods.get(&name) == pod.as_ref() {
            return;
        }
        let old = self.pods.remove(&name);
        // A new Pod with the name of an old one has none of its addresses.
        let kept = match (&old, &pod) {
            (Some(old), Some(new)) if old.uid == new.uid => new.addresses.as_slice(),
            _ => &[],
        };
        if let Some(old) = &old {
            remove_from(&mut self.of_node, &old.node, &name);
            self.maps.changed.push(map_name(&old.node));
            for address in &old.addresses {
                if !kept.contains(address) {
                    self.claims.remove(*address, &name);
                }
            }
        }
        if let Some(new) = &pod {
            let of_node = self.of_node.entry(new.node.clone()).or_default();
            of_node.insert(name.clone());
            self.maps.changed.push(map_name(&new.node));
            for address in &new.addresses {
                self.claims.add(*address, &name);
            }
        }
        for address in old.iter().chain(&pod).flat_map(|pod| &pod.addresses) {
            self.address_changed(*address);
        }
        self.locators.changed.push(name.clone());
        if let Some(pod) = pod {
            self.pods.insert(name, pod);
        }
    }

    /// Records that another Pod may have the address now.
    fn address_changed(&mut self, address: IpAddr) {
        for name in self.claims.at(address) {
            if let Some(pod) = self.pods.get(name) {
                self.maps.changed.push(map_name(&pod.node));
            }
            self.locators.changed.push(name.clone());
        }
    }

    /// Returns writes of objects that are not as desired, except those that must wait. A PodMap does not wait for further
    /// changes if it has an address of a Pod on another Node: clients would find the wrong Node.
    pub(super) fn plan(
        &mut self,
        observed: &Observed,
        must_wait: impl Fn(Collection, &ObjectName) -> Wait,
    ) -> Vec<Write> {
        self.settle();
        let mut writes = self.plan_changed(Collection::PodMaps, |pods, name| {
            let waits = match must_wait(Collection::PodMaps, name) {
                Wait::No => false,
                Wait::ForChanges => !pods.has_address_of_another_node(name),
                Wait::AfterFailure => true,
            };
            Planned::of(waits, || pods.map_write(observed, name))
        });
        writes.extend(self.plan_changed(Collection::PodLocators, |pods, name| {
            let waits = must_wait(Collection::PodLocators, name) != Wait::No;
            Planned::of(waits, || pods.locator_write(observed, name))
        }));
        writes
    }

    /// Plans the objects of a collection that may differ from the desired ones.
    fn plan_changed(
        &mut self,
        collection: Collection,
        plan: impl Fn(&Self, &ObjectName) -> Planned,
    ) -> Vec<Write> {
        let Some(written) = self.written_mut(collection) else {
            return Vec::new();
        };
        let mut changed = std::mem::take(&mut written.changed);
        let writes = changed.take_writes(MOST_WRITES, |name| plan(self, name));
        if let Some(written) = self.written_mut(collection) {
            written.changed = changed;
        }
        writes
    }

    /// Forgets which Pods have contested addresses, because another replica may have decided since.
    pub(super) fn forget(&mut self) {
        self.is_settled = false;
    }

    /// Chooses which Pod has each contested address: the one in a published PodMap, else the oldest.
    fn settle(&mut self) {
        if std::mem::replace(&mut self.is_settled, true) {
            return;
        }
        let (pods, maps) = (&self.pods, &self.maps);
        self.claims.sort_contested(|address, name| {
            let pod = pods.get(name);
            let map = pod.and_then(|pod| maps.get(&map_name(&pod.node)));
            let is_published = map.is_some_and(|map| map.has_address(address));
            (!is_published, pod.map(|pod| pod.created), name.clone())
        });
        let contested: Vec<IpAddr> = self
            .claims
            .contested()
            .map(|(address, _)| address)
            .collect();
        for address in contested {
            self.address_changed(address);
        }
    }

    /// Sets the labels of Nodes that the locators have.
    pub(super) fn use_keys(&mut self, keys: Vec<String>) {
        if self.keys != keys {
            self.keys = keys;
            for name in self.pods.keys() {
                self.locators.changed.push(name.clone());
            }
        }
    }

    /// Whether the written PodMap has an address that a Pod on another Node has now.
    fn has_address_of_another_node(&self, map: &ObjectName) -> bool {
        let written = self.maps.get(map);
        let mut addresses = written.into_iter().flat_map(WrittenObject::addresses);
        addresses.any(|address| {
            let holder = self.holder(self.claims.at(address));
            let pod = holder.and_then(|holder| self.pods.get(holder));
            pod.is_some_and(|pod| *pod.node != *map.name)
        })
    }

    fn map_write(&self, observed: &Observed, name: &ObjectName) -> Option<Write> {
        let spec = self.map_spec(observed, &name.name).map(|spec| json!(spec));
        let written = self.maps.get(name);
        write(Collection::PodMaps, name, spec, None, written)
    }

    /// `None` if the Node does not exist, or has no Pods.
    fn map_spec(&self, observed: &Observed, node: &str) -> Option<PodMapSpec> {
        observed.nodes.get(node)?;
        let mut pods = BTreeMap::new();
        for name in self.of_node.get(node)? {
            for address in self.own_addresses(name) {
                pods.insert(address, name.to_string());
            }
        }
        let pods: BTreeMap<IpAddr, String> = pods.into_iter().take(MAX_POD_ADDRESSES).collect();
        (!pods.is_empty()).then_some(PodMapSpec { pods })
    }

    fn locator_write(&self, observed: &Observed, name: &ObjectName) -> Option<Write> {
        let pod = self.pods.get(name);
        let spec = pod.map(|pod| json!(self.locator_spec(observed, name, pod)));
        let written = self.locators.get(name);
        write(Collection::PodLocators, name, spec, pod, written)
    }

    fn locator_spec(
        &self,
        observed: &Observed,
        name: &ObjectName,
        pod: &PodInfo,
    ) -> PodLocatorSpec {
        let node = observed.nodes.get(&pod.node);
        let label = |key: &String| {
            let value = node?.labels.get(key)?;
            (!value.is_empty()).then(|| (key.clone(), value.to_string()))
        };
        let addresses = self.own_addresses(name);
        PodLocatorSpec {
            node_name: pod.node.clone(),
            addresses: addresses.take(MAX_LOCATOR_ADDRESSES).collect(),
            node_labels: self.keys.iter().filter_map(label).collect(),
        }
    }

    /// The addresses that a Pod reports, without those that another Pod has.
    fn own_addresses(&self, name: &ObjectName) -> impl Iterator<Item = IpAddr> {
        let pod = self.pods.get(name);
        let addresses = pod.into_iter().flat_map(|pod| &pod.addresses).copied();
        addresses.filter(move |address| self.holder(self.claims.at(*address)) == Some(name))
    }

    /// The Pod that has an address, of those that report it: the first that does not terminate. So an address that is
    /// used again moves at once, and a kubelet that reports the address of a Pod of another Node does not get it.
    fn holder<'n>(&self, claims: &'n [ObjectName]) -> Option<&'n ObjectName> {
        let mut names = claims.iter();
        let living = names.find(|name| self.pods.get(*name).is_some_and(|pod| !pod.terminates));
        living.or(claims.first())
    }

    /// The Pods that report an address of another Pod, without those of an address that is used again.
    pub(super) fn conflicts(&self) -> BTreeSet<AddressConflict> {
        let mut conflicts = BTreeSet::new();
        for (address, claims) in self.claims.contested() {
            let mut living = claims.iter().filter_map(|name| {
                let pod = self.pods.get(name).filter(|pod| !pod.terminates)?;
                Some((name.clone(), pod.node.clone()))
            });
            let Some(holder) = living.next() else {
                continue;
            };
            conflicts.extend(living.map(|refused| AddressConflict {
                address,
                refused,
                holder: holder.clone(),
            }));
        }
        conflicts
    }
}

fn map_name(node: &str) -> ObjectName {
    ObjectName::new("", node)
}

/// Removes a name from the set of `key`; an empty set is removed, too.
fn remove_from<K: Eq + Hash>(
    sets: &mut HashMap<K, BTreeSet<ObjectName>>,
    key: &K,
    name: &ObjectName,
) {
    if let Some(names) = sets.get_mut(key) {
        names.remove(name);
        if names.is_empty() {
            sets.remove(key);
        }
    }
}

/// The write that makes an object as desired; `None` if it is. An object of `owner` is deleted with that Pod.
fn write(
    collection: Collection,
    name: &ObjectName,
    spec: Option<Value>,
    owner: Option<&PodInfo>,
    written: Option<&WrittenObject>,
) -> Option<Write> {
    let Some(spec) = spec else {
        return written.map(|_| Write {
            collection,
            name: name.clone(),
            kind: WriteKind::Delete,
            body: Value::Null,
            is_transition: false,
        });
    };
    let version = written.map(|written| written.resource_version.as_str());
    let mut write = write_whole(collection, name, spec, version);
    if let (Some(owner), Some(metadata)) = (owner, write.body.get_mut("metadata")) {
        let reference =
            json!({"apiVersion": "v1", "kind": "Pod", "name": &*name.name, "uid": owner.uid});
        value::put(metadata, "ownerReferences", vec![reference]);
    }
    let is_as_desired = written.is_some_and(|written| written.has_content_of(&write.body));
    (!is_as_desired).then_some(write)
}
