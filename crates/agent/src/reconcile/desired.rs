//! The desired state of each Service: the loop's small memory between two resolutions.
//!
//! Decisions and real servers are not kept; they are resolved again when needed.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};

use dataplane::nftables::{Element, ElementDelta, SetElement, SetId};
use rustc_hash::FxHashMap;
use topology_core::model::{Family, ObjectName};
use topology_core::virtual_server::VirtualServerKey;

use super::counted::{Changed, Counted};
use super::sorted_list::SortedList;

/// The desired state of one Service on this node.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct DesiredService {
    /// Its virtual servers.
    pub(crate) keys: SortedList<VirtualServerKey>,
    /// The addresses that need a route. An address of the node has one.
    pub(crate) vips: SortedList<IpAddr>,
    /// Ports that the agent itself opens.
    pub(crate) ports: AgentPorts,
    /// Elements of nftables sets, besides those that its virtual servers have in any case.
    pub(crate) elements: SortedList<SetElement>,
    /// Virtual servers that are never programmed, with reasons.
    pub(crate) refused: BTreeMap<VirtualServerKey, String>,
    /// Problems for its owner, one line each; a few, and the number of the others.
    pub(crate) findings: Vec<String>,
    /// The codes of all of them.
    pub(crate) finding_codes: BTreeSet<&'static str>,
    /// Number of its endpoints, on any node and in any condition.
    pub(crate) endpoints: usize,
    /// The families and traffic policies (`internal` or `external`) that are Local and have no usable endpoint here.
    pub(crate) without_local: BTreeSet<(&'static str, &'static str)>,
}

/// The element of a virtual server; one with a firewall mark has the packets of others.
fn served(key: &VirtualServerKey) -> Option<SetElement> {
    match *key {
        VirtualServerKey::Address {
            protocol,
            address,
            port,
        } => Some((SetId::Served, Element::Listener(address, protocol, port))),
        VirtualServerKey::FirewallMark { .. } => None,
    }
}

/// The ports that the agent itself opens for one Service.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct AgentPorts {
    /// Where load balancers ask, with the number of local endpoints.
    pub(crate) health: BTreeMap<SocketAddr, usize>,
    /// The loopback sockets of TCP node ports, with the cluster IP and port that the node itself connects to.
    pub(crate) loopback: BTreeMap<SocketAddr, SocketAddr>,
}

/// The desired state of all Services, with totals.
#[derive(Debug, Default)]
pub(crate) struct DesiredServices {
    /// A table has room for twice as many values; boxed, they are small.
    by_service: FxHashMap<ObjectName, Box<DesiredService>>,
    owners: FxHashMap<VirtualServerKey, ObjectName>,
    /// Keys that were added to `owners` or removed since the last call.
    changed_keys: Changed<VirtualServerKey>,
    vips: Counted<IpAddr>,
    /// Without those that every virtual server has.
    elements: Counted<SetElement>,
    /// Services whose ports changed since the last call.
    changed_ports: BTreeSet<ObjectName>,
    endpoints: usize,
    without_local: BTreeMap<(&'static str, &'static str), u64>,
    finding_codes: BTreeMap<&'static str, u64>,
}

impl DesiredServices {
    /// Replaces the desired state of a Service. Returns its previous keys that no Service has now.
    pub(crate) fn replace(
        &mut self,
        service: &ObjectName,
        desired: DesiredService,
    ) -> Vec<VirtualServerKey> {
        for key in &desired.keys {
            if self.owners.insert(*key, service.clone()).is_none() {
                self.changed_keys.toggle(*key);
            }
        }
        self.add(&desired);
        let is_empty = desired == DesiredService::default();
        let old = if is_empty {
            self.by_service.remove(service)
        } else {
            self.by_service.insert(service.clone(), Box::new(desired))
        };
        let old = old.unwrap_or_default();
        self.remove(&old);
        let now = self.by_service.get(service);
        let ports = now.map(|desired| &desired.ports);
        if ports.unwrap_or(&AgentPorts::default()) != &old.ports {
            self.changed_ports.insert(service.clone());
        }
        let dropped =
            |key: &VirtualServerKey| !now.is_some_and(|desired| desired.keys.contains(key));
        let is_orphan =
            |key: &&VirtualServerKey| dropped(key) && self.owners.get(key) == Some(service);
        let orphans: Vec<_> = old.keys.iter().filter(is_orphan).copied().collect();
        for key in &orphans {
            self.owners.remove(key);
            self.changed_keys.toggle(*key);
        }
        orphans
    }

    fn add(&mut self, service: &DesiredService) {
        service.vips.iter().for_each(|vip| self.vips.add(*vip));
        let elements = service.elements.iter();
        elements.for_each(|element| self.elements.add(*element));
        self.endpoints += service.endpoints;
        for gap in &service.without_local {
            *self.without_local.entry(*gap).or_default() += 1;
        }
        for code in &service.finding_codes {
            *self.finding_codes.entry(code).or_default() += 1;
        }
    }

    fn remove(&mut self, service: &DesiredService) {
        service.vips.iter().for_each(|vip| self.vips.remove(*vip));
        let elements = service.elements.iter();
        elements.for_each(|element| self.elements.remove(*element));
        self.endpoints -= service.endpoints;
        for gap in &service.without_local {
            if let Some(services) = self.without_local.get_mut(gap) {
                *services -= 1;
            }
        }
        for code in &service.finding_codes {
            if let Some(services) = self.finding_codes.get_mut(code) {
                *services -= 1;
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

    /// Number of Services with a traffic policy Local and no usable endpoint here, by family and policy.
    pub(crate) fn without_local(&self) -> &BTreeMap<(&'static str, &'static str), u64> {
        &self.without_local
    }

    /// Number of Services with a finding of each code.
    pub(crate) fn finding_codes(&self) -> &BTreeMap<&'static str, u64> {
        &self.finding_codes
    }

    /// The desired state of a Service.
    pub(crate) fn service(&self, service: &ObjectName) -> Option<&DesiredService> {
        self.by_service.get(service).map(Box::as_ref)
    }

    /// The Service of a virtual server.
    pub(crate) fn owner(&self, key: &VirtualServerKey) -> Option<&ObjectName> {
        self.owners.get(key)
    }

    /// All Services, in no order.
    pub(crate) fn services(&self) -> impl Iterator<Item = (&ObjectName, &DesiredService)> {
        let services = self.by_service.iter();
        services.map(|(name, desired)| (name, desired.as_ref()))
    }

    /// The Services whose ports changed since the last call.
    pub(crate) fn take_changed_ports(&mut self) -> BTreeSet<ObjectName> {
        std::mem::take(&mut self.changed_ports)
    }

    /// All virtual addresses.
    pub(crate) fn vips(&self) -> impl Iterator<Item = IpAddr> {
        self.vips.values()
    }

    /// All elements of nftables sets.
    pub(crate) fn elements(&self) -> impl Iterator<Item = SetElement> {
        let served = self.owners.keys().filter_map(served);
        served.chain(self.elements.values())
    }

    /// The families of the virtual addresses. IPv4 sorts before IPv6.
    pub(crate) fn vip_families(&self) -> BTreeSet<Family> {
        let ends = self.vips.ends().into_iter().flatten();
        ends.map(|vip| Family::of(*vip)).collect()
    }

    /// The virtual addresses that were added and removed since the last call.
    pub(crate) fn take_vip_delta(&mut self) -> [Vec<IpAddr>; 2] {
        self.vips.take_delta()
    }

    /// The elements that were added and removed since the last call.
    pub(crate) fn take_element_delta(&mut self) -> ElementDelta {
        let owners = &self.owners;
        let [new, gone] = self.changed_keys.take(|key| owners.contains_key(key));
        let [added, removed] = self.elements.take_delta();
        ElementDelta {
            added: new.iter().filter_map(served).chain(added).collect(),
            removed: gone.iter().filter_map(served).chain(removed).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use dataplane::nftables::{Element, SetId};
    use topology_core::model::Protocol;

    use super::*;

    fn key(port: u16) -> VirtualServerKey {
        VirtualServerKey::Address {
            protocol: Protocol::Tcp,
            address: VIP.parse().unwrap(),
            port,
        }
    }

    const VIP: &str = "10.96.0.10";

    fn vips(list: &[&str]) -> Vec<IpAddr> {
        list.iter().map(|ip| ip.parse().unwrap()).collect()
    }

    fn asks(ports: &[u16]) -> DesiredService {
        let vip = (!ports.is_empty()).then(|| VIP.parse().unwrap());
        DesiredService {
            keys: ports.iter().map(|port| key(*port)).collect(),
            vips: vip.into_iter().collect(),
            ..DesiredService::default()
        }
    }

    fn silent() -> SetElement {
        (
            SetId::Silent,
            Element::Listener(VIP.parse().unwrap(), Protocol::Tcp, 80),
        )
    }

    fn name(name: &str) -> ObjectName {
        ObjectName::new("t", name)
    }

    #[test]
    fn kp_ut_034_an_address_is_desired_while_any_of_its_ports_is() {
        let mut desired = DesiredServices::default();
        desired.replace(&name("a"), asks(&[1234, 1235]));
        assert_eq!(desired.take_vip_delta(), [vips(&[VIP]), vips(&[])]);
        assert_eq!(desired.replace(&name("a"), asks(&[1235])), [key(1234)]);
        assert_eq!(desired.take_vip_delta(), [vips(&[]), vips(&[])]);
        assert_eq!(desired.vip_families(), [Family::V4].into());
        assert_eq!(
            desired.replace(&name("a"), DesiredService::default()),
            [key(1235)]
        );
        assert_eq!(desired.take_vip_delta(), [vips(&[]), vips(&[VIP])]);
        assert_eq!(
            (desired.vips().count(), desired.vip_families().len()),
            (0, 0)
        );
    }

    #[test]
    fn a_key_that_moves_to_another_service_is_no_orphan_whatever_the_order() {
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
    fn an_element_that_moves_to_another_service_stays_in_any_order() {
        let with_element = || DesiredService {
            elements: [silent()].into_iter().collect(),
            ..asks(&[80])
        };
        let mut desired = DesiredServices::default();
        desired.replace(&name("b"), with_element());
        desired.replace(&name("a"), with_element());
        desired.replace(&name("b"), DesiredService::default());
        let both = [served(&key(80)).unwrap(), silent()];
        assert_eq!(desired.elements().collect::<Vec<_>>(), both);
        desired.replace(&name("a"), asks(&[80]));
        assert_eq!(desired.elements().collect::<Vec<_>>(), both[..1]);
        desired.replace(&name("a"), DesiredService::default());
        assert_eq!(desired.elements().count(), 0);
    }

    #[test]
    fn an_equal_desired_state_changes_nothing() {
        let mut desired = DesiredServices::default();
        let with_element = DesiredService {
            elements: [silent()].into_iter().collect(),
            ..asks(&[80])
        };
        let both = [served(&key(80)).unwrap(), silent()];
        desired.replace(&name("a"), with_element.clone());
        assert_eq!(desired.take_vip_delta(), [vips(&[VIP]), vips(&[])]);
        assert_eq!(desired.take_element_delta().added, both);
        assert_eq!(desired.replace(&name("a"), with_element), []);
        assert_eq!(desired.take_vip_delta(), [vips(&[]), vips(&[])]);
        assert!(desired.take_element_delta().is_empty());
        desired.replace(&name("a"), DesiredService::default());
        assert_eq!(desired.take_element_delta().removed, both);
    }
}
