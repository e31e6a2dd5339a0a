//! The desired state of each Service: the loop's small memory between two resolutions.
//!
//! Decisions and real servers are not kept; they are resolved again when needed.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use dataplane::nftables::EndpointDelta;
use rustc_hash::FxHashMap;
use topology_core::model::ObjectName;
use topology_core::virtual_server::VirtualServerKey;

/// The desired state of one Service on this node.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct DesiredService {
    pub(crate) keys: BTreeSet<VirtualServerKey>,
    /// Addresses of its endpoints on this node, ready or not.
    pub(crate) local: BTreeSet<IpAddr>,
    /// Virtual servers without real servers that drop new connections.
    pub(crate) silent: BTreeSet<VirtualServerKey>,
    /// Virtual servers that are never programmed, with reasons.
    pub(crate) refused: BTreeMap<VirtualServerKey, String>,
    /// Problems for its owner, one line each; a few, and the number of the others.
    pub(crate) findings: Vec<String>,
    /// Number of its endpoints, on any node and in any condition.
    pub(crate) endpoints: usize,
}

/// The desired state of all Services, with totals.
#[derive(Debug, Default)]
pub(crate) struct DesiredServices {
    by_service: BTreeMap<ObjectName, DesiredService>,
    owners: FxHashMap<VirtualServerKey, ObjectName>,
    vips: Counted,
    local: Counted,
    /// Number of Services with the key: while a key moves from one Service to another, both have it.
    silent: BTreeMap<VirtualServerKey, u32>,
    silence_changed: bool,
    endpoints: usize,
}

impl DesiredServices {
    /// Replaces the desired state of a Service. Returns its previous keys that no Service has now.
    pub(crate) fn replace(
        &mut self,
        service: &ObjectName,
        desired: DesiredService,
    ) -> Vec<VirtualServerKey> {
        for key in &desired.keys {
            self.owners.insert(*key, service.clone());
            self.vips.add(address(key));
        }
        desired
            .local
            .iter()
            .for_each(|ip| self.local.add(Some(*ip)));
        self.endpoints += desired.endpoints;
        let is_empty = desired == DesiredService::default();
        let old = if is_empty {
            self.by_service.remove(service)
        } else {
            self.by_service.insert(service.clone(), desired)
        };
        let old = old.unwrap_or_default();
        self.replace_silent(service, &old.silent);
        for key in &old.keys {
            self.vips.remove(address(key));
        }
        old.local.iter().for_each(|ip| self.local.remove(Some(*ip)));
        self.endpoints -= old.endpoints;
        let now = self.by_service.get(service);
        let dropped =
            |key: &VirtualServerKey| !now.is_some_and(|desired| desired.keys.contains(key));
        let orphans: Vec<_> = old
            .keys
            .into_iter()
            .filter(|key| dropped(key) && self.owners.get(key) == Some(service))
            .collect();
        for key in &orphans {
            self.owners.remove(key);
        }
        orphans
    }

    fn replace_silent(&mut self, service: &ObjectName, old: &BTreeSet<VirtualServerKey>) {
        let now = self.by_service.get(service).map(|desired| &desired.silent);
        if now.unwrap_or(&BTreeSet::new()) == old {
            return;
        }
        self.silence_changed = true;
        for key in now.into_iter().flatten() {
            *self.silent.entry(*key).or_default() += 1;
        }
        for key in old {
            if let Entry::Occupied(mut users) = self.silent.entry(*key) {
                *users.get_mut() -= 1;
                if *users.get() == 0 {
                    users.remove();
                }
            }
        }
    }

    /// Findings that are new for the Service.
    pub(crate) fn new_findings<'a>(
        &self,
        service: &ObjectName,
        desired: &'a DesiredService,
    ) -> Vec<&'a String> {
        let before = self
            .by_service
            .get(service)
            .map_or(&[][..], |desired| &desired.findings);
        desired
            .findings
            .iter()
            .filter(|finding| !before.contains(finding))
            .collect()
    }

    /// Number of Services and of their endpoints.
    pub(crate) fn size(&self) -> (usize, usize) {
        (self.by_service.len(), self.endpoints)
    }

    /// The desired state of a Service.
    pub(crate) fn service(&self, service: &ObjectName) -> Option<&DesiredService> {
        self.by_service.get(service)
    }

    /// The Service of a virtual server.
    pub(crate) fn owner(&self, key: &VirtualServerKey) -> Option<&ObjectName> {
        self.owners.get(key)
    }

    /// All Services, by name.
    pub(crate) fn services(&self) -> impl Iterator<Item = (&ObjectName, &DesiredService)> {
        self.by_service.iter()
    }

    /// All virtual addresses.
    pub(crate) fn vips(&self) -> impl Iterator<Item = IpAddr> {
        self.vips.values()
    }

    /// All addresses of endpoints on this node.
    pub(crate) fn local(&self) -> impl Iterator<Item = IpAddr> {
        self.local.values()
    }

    /// All virtual servers that drop new connections.
    pub(crate) fn silent(&self) -> impl Iterator<Item = &VirtualServerKey> {
        self.silent.keys()
    }

    /// Whether the set of virtual addresses or of silent ports changed since the last call.
    pub(crate) fn take_frontends_changed(&mut self) -> bool {
        let vips = std::mem::take(&mut self.vips.changed);
        std::mem::take(&mut self.silence_changed) || !vips.is_empty()
    }

    /// The endpoints on this node that were added and removed since the last call.
    pub(crate) fn take_endpoint_delta(&mut self) -> EndpointDelta {
        let changed = std::mem::take(&mut self.local.changed);
        let (added, removed) = changed
            .into_iter()
            .partition(|ip| self.local.users.contains_key(ip));
        EndpointDelta { added, removed }
    }
}

/// Addresses with reference counts.
#[derive(Debug, Default)]
struct Counted {
    users: BTreeMap<IpAddr, u32>,
    /// Addresses that were added or removed since the last call.
    changed: BTreeSet<IpAddr>,
}

impl Counted {
    fn add(&mut self, address: Option<IpAddr>) {
        if let Some(address) = address {
            let users = self.users.entry(address).or_default();
            *users += 1;
            if *users == 1 {
                self.toggle(address);
            }
        }
    }

    fn remove(&mut self, address: Option<IpAddr>) {
        let Some(address) = address else { return };
        if let Some(users) = self.users.get_mut(&address) {
            *users -= 1;
            if *users == 0 {
                self.users.remove(&address);
                self.toggle(address);
            }
        }
    }

    /// Added and removed again is no change.
    fn toggle(&mut self, address: IpAddr) {
        if !self.changed.remove(&address) {
            self.changed.insert(address);
        }
    }

    fn values(&self) -> impl Iterator<Item = IpAddr> {
        self.users.keys().copied()
    }
}

fn address(key: &VirtualServerKey) -> Option<IpAddr> {
    match key {
        VirtualServerKey::Address { address, .. } => Some(*address),
        VirtualServerKey::FirewallMark { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use topology_core::model::Protocol;

    use super::*;

    fn key(port: u16) -> VirtualServerKey {
        VirtualServerKey::Address {
            protocol: Protocol::Tcp,
            address: "10.96.0.10".parse().unwrap(),
            port,
        }
    }

    fn asks(ports: &[u16]) -> DesiredService {
        DesiredService {
            keys: ports.iter().map(|port| key(*port)).collect(),
            ..DesiredService::default()
        }
    }

    fn name(name: &str) -> ObjectName {
        ObjectName::new("t", name)
    }

    #[test]
    fn kp_ut_034_an_address_is_desired_while_any_of_its_ports_is() {
        let mut desired = DesiredServices::default();
        desired.replace(&name("a"), asks(&[1234, 1235]));
        assert!(desired.take_frontends_changed());
        assert_eq!(desired.replace(&name("a"), asks(&[1235])), [key(1234)]);
        assert!(!desired.take_frontends_changed(), "the address stays");
        assert_eq!(
            desired.replace(&name("a"), DesiredService::default()),
            [key(1235)]
        );
        assert!(desired.take_frontends_changed());
        assert_eq!(desired.vips().count(), 0);
    }

    #[test]
    fn a_key_that_moves_to_another_service_is_no_orphan_in_any_order() {
        let mut desired = DesiredServices::default();
        desired.replace(&name("a"), asks(&[80]));
        desired.replace(&name("b"), asks(&[80]));
        assert_eq!(desired.replace(&name("a"), asks(&[])), []);
        assert_eq!(desired.owner(&key(80)), Some(&name("b")));

        assert_eq!(desired.replace(&name("b"), asks(&[])), [key(80)]);
        desired.replace(&name("a"), asks(&[80]));
        assert_eq!(desired.owner(&key(80)), Some(&name("a")));
    }

    #[test]
    fn a_silent_key_that_moves_to_another_service_stays_silent_in_any_order() {
        let silent = || DesiredService {
            silent: BTreeSet::from([key(80)]),
            ..asks(&[80])
        };
        let mut desired = DesiredServices::default();
        desired.replace(&name("b"), silent());
        desired.replace(&name("a"), silent());
        desired.replace(&name("b"), DesiredService::default());
        assert_eq!(desired.silent().collect::<Vec<_>>(), [&key(80)]);
        desired.replace(&name("a"), asks(&[80]));
        assert_eq!(desired.silent().count(), 0);
    }

    #[test]
    fn an_equal_desired_state_changes_nothing() {
        let mut desired = DesiredServices::default();
        let local = DesiredService {
            local: BTreeSet::from(["10.244.1.2".parse().unwrap()]),
            ..asks(&[80])
        };
        desired.replace(&name("a"), local.clone());
        assert!(desired.take_frontends_changed());
        assert_eq!(desired.take_endpoint_delta().added.len(), 1);
        assert_eq!(desired.replace(&name("a"), local), []);
        assert!(!desired.take_frontends_changed() && desired.take_endpoint_delta().is_empty());
        desired.replace(&name("a"), DesiredService::default());
        assert_eq!(desired.take_endpoint_delta().removed.len(), 1);
    }
}
