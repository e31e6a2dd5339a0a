//! Finds the records of a name.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;

use hickory_proto::rr::{Name, Record, RecordType};
use topology_core::model::{EndpointSlice, Family, ObjectName, Protocol, Service};
use topology_core::snapshot::Snapshot;

use crate::cluster_name::{ClusterName, dashed, endpoint_name, pod_address, service_name};
use crate::published::is_published;
use crate::responder::{ClientQuestion, NameLookup, Responder};
use crate::turns::TurnKey;

/// The version of the specification whose names exist.
const SCHEMA_VERSION: &str = "1.1.0";

impl Responder {
    /// What the name has; `None` if it is not ours.
    pub(crate) fn find(&mut self, question: &ClientQuestion<'_>) -> Option<NameLookup> {
        let name = &question.name;
        let Some(meaning) = ClusterName::parse(name, &self.records.domain) else {
            return self.pointers(question);
        };
        let only = |record_type, record: Record| {
            let is_asked = question.asked.record_type == record_type;
            let records = is_asked.then_some(record);
            NameLookup::Records(records.into_iter().collect(), Vec::new())
        };
        Some(match meaning {
            ClusterName::Apex if question.asked.record_type == RecordType::NS => {
                self.name_servers(question)
            }
            ClusterName::Apex => only(RecordType::SOA, self.records.soa(self.serial)),
            ClusterName::Branch => NameLookup::NO_RECORDS,
            ClusterName::NameServer => self.name_server_addresses(question),
            ClusterName::Version => only(RecordType::TXT, self.records.text(name, SCHEMA_VERSION)),
            ClusterName::Namespace(namespace) => {
                NameLookup::branch(question.snapshot.has_services_in(&namespace))
            }
            ClusterName::Service(service) => self.service(question, &service),
            ClusterName::Protocol { service, protocol } => NameLookup::branch(
                existing(question.snapshot, &service).is_some_and(|service| {
                    has_port(question.snapshot, service, |name, of_port| {
                        !name.is_empty() && of_port == protocol
                    })
                }),
            ),
            ClusterName::Port { service, port } => self.port(question, &service, &port),
            ClusterName::Endpoint { service, hostname } => {
                self.endpoint(question, &service, &hostname)
            }
            ClusterName::Pod(address) => {
                let record = self.records.address(name, address);
                only(type_of(Family::of(address)), record)
            }
            ClusterName::Nothing => NameLookup::NoSuchName,
        })
    }

    fn service(&mut self, question: &ClientQuestion<'_>, name: &ObjectName) -> NameLookup {
        let Some(service) = existing(question.snapshot, name) else {
            return NameLookup::NoSuchName;
        };
        if let Some(target) = &service.external_name {
            return alias(target);
        }
        match family_of(question.asked.record_type) {
            Some(family) if service.is_headless() => {
                let asked = question.about(name);
                let decision = self.decisions.of_name(asked);
                let weighted = decision.endpoints.of_family(family);
                let turn = self.turn(question, name, &Arc::default());
                let endpoints = weighted
                    .into_iter()
                    .flat_map(|weighted| weighted.of_turn(turn));
                let addresses = endpoints.map(|endpoint| endpoint.address);
                NameLookup::Records(self.addresses_of(question, addresses), Vec::new())
            }
            Some(family) => {
                let addresses = cluster_ips(service, family);
                NameLookup::Records(self.addresses_of(question, addresses), Vec::new())
            }
            None if question.asked.record_type == RecordType::SRV => {
                self.ports(question, service, None)
            }
            None => NameLookup::NO_RECORDS,
        }
    }

    /// The addresses of the endpoints with this hostname. Clients ask for just this pod, so no
    /// policy decides.
    fn endpoint(
        &self,
        question: &ClientQuestion<'_>,
        service: &ObjectName,
        hostname: &str,
    ) -> NameLookup {
        let Some(service) = question.snapshot.service(service) else {
            return NameLookup::NoSuchName;
        };
        let by_address = pod_address(hostname);
        let mut found = BTreeSet::new();
        let slices = question.snapshot.slices(&service.name).iter();
        for (endpoint, own) in slices.flat_map(EndpointSlice::endpoints_with_hostnames) {
            let address = endpoint.address;
            let is_by_address = || by_address == Some(address) && dashed(address) == hostname;
            let is_asked = own.map_or_else(is_by_address, |own| **own == *hostname);
            if is_asked && is_published(service, endpoint) {
                found.insert(address);
            }
        }
        if found.is_empty() {
            return NameLookup::NoSuchName;
        }
        let family = family_of(question.asked.record_type);
        let of_family = found.into_iter();
        let of_family = of_family.filter(|address| Some(Family::of(*address)) == family);
        NameLookup::Records(self.addresses_of(question, of_family), Vec::new())
    }

    /// The names of an address: that of the Service at a cluster IP, those of endpoints otherwise. Other records are not
    /// ours: a negative answer needs the start of authority of the reverse zone, which this server does not have.
    fn pointers(&self, question: &ClientQuestion<'_>) -> Option<NameLookup> {
        if question.asked.record_type != RecordType::PTR {
            return None;
        }
        let snapshot = question.snapshot;
        let range = question.name.parse_arpa_name().ok()?;
        let is_whole = range.prefix_len() == range.max_prefix_len();
        let address = is_whole.then(|| range.addr())?;
        let domain = &self.records.domain;
        let users = self.addresses.users(address).iter();
        let at_cluster_ip = users.clone().find(|user| user.is_cluster_ip);
        let names: BTreeSet<Name> = match at_cluster_ip {
            Some(user) => service_name(&user.service, domain).into_iter().collect(),
            None => users
                .filter_map(|user| snapshot.service(&user.service))
                .flat_map(|service| {
                    let hosts = published_hosts(service, snapshot.slices(&service.name), address);
                    let hosts = hosts.into_iter();
                    hosts.filter_map(move |host| endpoint_name(&host, &service.name, domain))
                })
                .take(question.asked.most_records())
                .collect(),
        };
        if names.is_empty() {
            return None;
        }
        let names = names.into_iter();
        let records = names.map(|name| self.records.pointer(&question.name, name));
        Some(NameLookup::Records(records.collect(), Vec::new()))
    }

    /// Records of the addresses, as many as the reply can have.
    pub(crate) fn addresses_of(
        &self,
        question: &ClientQuestion<'_>,
        addresses: impl IntoIterator<Item = IpAddr>,
    ) -> Vec<Record> {
        let addresses = addresses.into_iter().take(question.asked.most_records());
        addresses
            .map(|address| self.records.address(&question.name, address))
            .collect()
    }

    pub(crate) fn turn(
        &mut self,
        question: &ClientQuestion<'_>,
        service: &ObjectName,
        port: &Arc<str>,
    ) -> u64 {
        let key = TurnKey {
            client: question.asked.client,
            service: service.clone(),
            record_type: question.asked.record_type,
            port: Arc::clone(port),
        };
        self.turns.next(key, question.asked.transport)
    }
}

/// Whether DNS has the name of a Service: a headless one needs an endpoint, and an external name must not be an address.
pub fn has_name(snapshot: &Snapshot, service: &ObjectName) -> bool {
    existing(snapshot, service).is_some_and(|service| {
        let target = service.external_name.as_deref();
        !target.is_some_and(is_address)
    })
}

/// Whether DNS has a name of a port of the Service: ports without a name have none.
pub fn has_port_name(snapshot: &Snapshot, service: &Service, port: &str) -> bool {
    !port.is_empty() && has_port(snapshot, service, |name, _| name == port)
}

/// The Service, if DNS has its name.
pub(crate) fn existing<'s>(snapshot: &'s Snapshot, name: &ObjectName) -> Option<&'s Service> {
    let service = snapshot.service(name)?;
    let mut endpoints = snapshot
        .slices(name)
        .iter()
        .flat_map(|slice| &slice.endpoints);
    let exists =
        !service.is_headless() || endpoints.any(|endpoint| is_published(service, endpoint));
    exists.then_some(service)
}

/// Whether the Service has such a port. One of a headless Service is in the slice of an endpoint.
pub(crate) fn has_port(
    snapshot: &Snapshot,
    service: &Service,
    is_asked: impl Fn(&str, Protocol) -> bool,
) -> bool {
    if service.external_name.is_some() {
        return false;
    }
    if !service.is_headless() {
        let mut ports = service.ports.iter();
        return ports.any(|port| is_asked(&port.name, port.protocol));
    }
    snapshot.slices(&service.name).iter().any(|slice| {
        let mut ports = slice.ports.iter();
        let mut endpoints = slice.endpoints.iter();
        ports.any(|port| is_asked(&port.name, port.protocol))
            && endpoints.any(|endpoint| is_published(service, endpoint))
    })
}

fn cluster_ips(service: &Service, family: Family) -> impl Iterator<Item = IpAddr> {
    let all = service.cluster_ips();
    all.filter(move |address| Family::of(*address) == family)
}

/// The names of the published endpoints with an address: of each its hostname, or otherwise the address with dashes.
pub(crate) fn published_hosts(
    service: &Service,
    slices: &[EndpointSlice],
    address: IpAddr,
) -> BTreeSet<String> {
    let endpoints = slices
        .iter()
        .flat_map(EndpointSlice::endpoints_with_hostnames);
    let published = endpoints
        .filter(|(endpoint, _)| endpoint.address == address && is_published(service, endpoint));
    published
        .map(|(_, hostname)| hostname.map_or_else(|| dashed(address), ToString::to_string))
        .collect()
}

/// An external name that is no name of DNS leads nowhere. One that is an address is not resolved, as the API says.
fn alias(target: &str) -> NameLookup {
    if is_address(target) {
        return NameLookup::NoSuchName;
    }
    alias_target(target).map_or(NameLookup::NO_RECORDS, NameLookup::Alias)
}

/// The name to which an external name leads; `None` if it is empty, or no name of DNS.
fn alias_target(target: &str) -> Option<Name> {
    let mut name = Name::from_ascii(target).ok()?;
    name.set_fqdn(true);
    (!name.is_root()).then_some(name)
}

/// Whether an external name leads to another name.
pub fn is_alias(target: &str) -> bool {
    !is_address(target) && alias_target(target).is_some()
}

fn is_address(target: &str) -> bool {
    target.trim_end_matches('.').parse::<IpAddr>().is_ok()
}

pub(crate) fn family_of(record_type: RecordType) -> Option<Family> {
    match record_type {
        RecordType::A => Some(Family::V4),
        RecordType::AAAA => Some(Family::V6),
        _ => None,
    }
}

fn type_of(family: Family) -> RecordType {
    match family {
        Family::V4 => RecordType::A,
        Family::V6 => RecordType::AAAA,
    }
}
