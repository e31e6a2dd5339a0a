//! The Pods that report each address.

use std::collections::{BTreeSet, HashMap};
use std::net::IpAddr;

use topology_core::model::ObjectName;

/// The Pods that report each address, in the order in which they began to. More than one, while an address is used
/// again, or if a kubelet reports the address of a Pod of another Node.
#[derive(Debug, Default)]
pub(super) struct AddressClaims {
    pods: HashMap<IpAddr, Vec<ObjectName>>,
    /// The addresses that more than one Pod reports.
    contested: BTreeSet<IpAddr>,
}

impl AddressClaims {
    pub(super) fn at(&self, address: IpAddr) -> &[ObjectName] {
        self.pods.get(&address).map_or(&[], Vec::as_slice)
    }

    pub(super) fn contested(&self) -> impl Iterator<Item = (IpAddr, &[ObjectName])> {
        let addresses = self.contested.iter();
        addresses.map(|address| (*address, self.at(*address)))
    }

    /// Adds a Pod after the others, unless it reports the address already.
    pub(super) fn add(&mut self, address: IpAddr, pod: &ObjectName) {
        let pods = self.pods.entry(address).or_default();
        if !pods.contains(pod) {
            pods.push(pod.clone());
        }
        if pods.len() > 1 {
            self.contested.insert(address);
        }
    }

    pub(super) fn remove(&mut self, address: IpAddr, pod: &ObjectName) {
        let Some(pods) = self.pods.get_mut(&address) else {
            return;
        };
        pods.retain(|other| other != pod);
        if pods.len() < 2 {
            self.contested.remove(&address);
        }
        if pods.is_empty() {
            self.pods.remove(&address);
        }
    }

    /// Orders the Pods that report the same address by `key` instead.
    pub(super) fn sort_contested<K: Ord>(&mut self, key: impl Fn(IpAddr, &ObjectName) -> K) {
        for address in &self.contested {
            if let Some(pods) = self.pods.get_mut(address) {
                pods.sort_by_cached_key(|pod| key(*address, pod));
            }
        }
    }
}
