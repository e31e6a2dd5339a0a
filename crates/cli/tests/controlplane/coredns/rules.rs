//! What each server answers, by rules of which every difference is one.
//!
//! Only unequal answers are compared with the rules: then each server must answer what they predict.

use std::collections::BTreeSet;
use std::net::IpAddr;

use hickory_proto::op::ResponseCode;
use hickory_proto::rr::RecordType;

use super::cluster::{DnsCluster, DnsEndpoint, DnsPort, DnsService, DnsSlice, ServiceKind};
use super::differences::Difference;
use super::questions::{Asked, Question};
use super::reply::{Reply, SOA};
use super::upstream;

/// The Node of the client.
pub(crate) const CLIENT_NODE: usize = 1;

/// The rules of one server: `CoreDNS`, with some of our differences.
pub(crate) struct Rules<'c> {
    pub(crate) cluster: &'c DnsCluster,
    pub(crate) differences: BTreeSet<Difference>,
}

impl Rules<'_> {
    pub(crate) fn predict(&self, question: &Question) -> Reply {
        let Question {
            name,
            record_type,
            asked,
        } = question;
        let name = &name.to_lowercase();
        match asked {
            Asked::Domain if *record_type == RecordType::SOA => {
                Reply::with([SOA.to_owned()].into(), BTreeSet::new())
            }
            Asked::Domain | Asked::Branch => self.branch(*record_type),
            Asked::Namespace {
                exists,
                has_services,
            } => match (*has_services, *exists && !self.has(Difference::Namespaces)) {
                (false, false) => Reply::no_such_name(),
                _ => self.branch(*record_type),
            },
            Asked::NamespaceOfPods { exists } => {
                if *exists || self.has(Difference::Namespaces) {
                    self.branch(*record_type)
                } else {
                    Reply::no_such_name()
                }
            }
            Asked::Pod { address, exists } => {
                let exists = *exists || self.has(Difference::Namespaces);
                self.pod(name, *record_type, address.filter(|_| exists))
            }
            Asked::Version => self.version(name, *record_type),
            Asked::AboveNameServer if !self.has(Difference::NameServer) => Reply::no_such_name(),
            Asked::AboveNameServer => Reply::no_data(),
            Asked::NameServer => self.name_server(*record_type),
            Asked::Nothing => Reply::no_such_name(),
            Asked::Service(at) => self.service(name, *record_type, &self.cluster.services[*at]),
            Asked::Port {
                service,
                port,
                has_underscores,
            } => {
                if !has_underscores && self.has(Difference::PortWithoutUnderscore) {
                    return Reply::no_such_name();
                }
                self.port(name, *record_type, &self.cluster.services[*service], *port)
            }
            Asked::Protocol { service, protocol } => {
                self.protocol(&self.cluster.services[*service], protocol)
            }
            Asked::Endpoint { service, host } => {
                self.endpoint(name, *record_type, &self.cluster.services[*service], host)
            }
            Asked::Pointer(address) => self.pointer(name, *record_type, *address),
            Asked::Foreign => {
                let (code, answers) = upstream::records(name, *record_type);
                Reply::forwarded(code, answers)
            }
        }
    }

    fn has(&self, difference: Difference) -> bool {
        self.differences.contains(&difference)
    }

    /// A name that has only names below it.
    fn branch(&self, record_type: RecordType) -> Reply {
        if record_type == RecordType::TXT && !self.has(Difference::NamesAbove) {
            Reply::no_such_name()
        } else {
            Reply::no_data()
        }
    }

    /// The server in the SOA record, which has no address.
    fn name_server(&self, record_type: RecordType) -> Reply {
        let is_hidden = matches!(record_type, RecordType::PTR | RecordType::TXT);
        if is_hidden && !self.has(Difference::NameServer) {
            Reply::no_such_name()
        } else {
            Reply::no_data()
        }
    }

    fn protocol(&self, service: &DnsService, protocol: &str) -> Reply {
        let ports = service.dns_ports().into_iter();
        let mut ports = ports.filter(|port| port.1 == protocol);
        let has_names = ports.any(|port| self.has_port(service, port));
        if has_names && self.has(Difference::NamesAbove) {
            Reply::no_data()
        } else {
            Reply::no_such_name()
        }
    }

    fn version(&self, name: &str, record_type: RecordType) -> Reply {
        let is_ours = self.has(Difference::Version);
        match record_type {
            RecordType::TXT => {
                let ttl = if is_ours { 5 } else { 28_800 };
                Reply::with([format!("{name} {ttl} TXT 1.1.0")].into(), BTreeSet::new())
            }
            _ if is_ours => Reply::no_data(),
            _ => Reply::no_such_name(),
        }
    }

    fn pod(&self, name: &str, record_type: RecordType, address: Option<IpAddr>) -> Reply {
        let Some(address) = address else {
            return Reply::no_such_name();
        };
        let own = address_record(name, address);
        let answers = match record_type {
            RecordType::SRV if !self.has(Difference::PortsOfPod) => {
                let port = format!("{name} 5 SRV 0 - 0 {name}");
                return Reply::with([port].into(), [own].into());
            }
            _ => [own].into_iter().filter(|_| is_of(record_type, address)),
        };
        Reply::with(answers.collect(), BTreeSet::new())
    }

    fn service(&self, name: &str, record_type: RecordType, service: &DnsService) -> Reply {
        match &service.kind {
            ServiceKind::ExternalName(target) => self.alias(name, record_type, target),
            ServiceKind::Headless if !self.endpoints(service).any(|_| true) => {
                Reply::no_such_name()
            }
            _ if record_type == RecordType::SRV => self.srv(name, service, None),
            _ => self.addresses(name, record_type, service, None),
        }
    }

    fn port(
        &self,
        name: &str,
        record_type: RecordType,
        service: &DnsService,
        port: DnsPort,
    ) -> Reply {
        match record_type {
            _ if !self.has_port(service, port) => Reply::no_such_name(),
            RecordType::SRV => self.srv(name, service, Some(port)),
            _ if self.has(Difference::PortAddresses) => Reply::no_data(),
            _ => self.addresses(name, record_type, service, Some(port)),
        }
    }

    /// Whether the port has a name.
    fn has_port(&self, service: &DnsService, port: DnsPort) -> bool {
        match service.kind {
            ServiceKind::ExternalName(_) => false,
            _ if port.0.is_empty() => false,
            ServiceKind::ClusterIps(_) => true,
            ServiceKind::Headless => {
                let mut endpoints = self.endpoints(service);
                endpoints.any(|(slice, _)| number(slice, port).is_some())
            }
        }
    }

    /// The records of a type with addresses; none for other types.
    fn addresses(
        &self,
        name: &str,
        record_type: RecordType,
        service: &DnsService,
        port: Option<DnsPort>,
    ) -> Reply {
        let addresses: Vec<IpAddr> = if let ServiceKind::ClusterIps(own) = &service.kind {
            own.clone()
        } else {
            let families = ["IPv4", "IPv6"].into_iter();
            let chosen = families.flat_map(|family| self.chosen(service, family, port));
            chosen.map(|(_, endpoint)| endpoint.address).collect()
        };
        let addresses = addresses.into_iter();
        let addresses = addresses.filter(|address| is_of(record_type, *address));
        let records = addresses.map(|address| address_record(name, address));
        Reply::with(records.collect(), BTreeSet::new())
    }

    /// The ports of the Service, or of the chosen endpoints of a headless one: all, or the one in question.
    fn srv(&self, name: &str, service: &DnsService, asked: Option<DnsPort>) -> Reply {
        let mut answers = BTreeSet::new();
        let mut additionals = BTreeSet::new();
        let mut add = |target: &str, number: u16, address: IpAddr| {
            answers.insert(format!("{name} 5 SRV 0 - {number} {target}"));
            additionals.insert(address_record(target, address));
        };
        let is_asked = |port: &&DnsPort| {
            asked.is_none_or(|(name, protocol, _)| (port.0, port.1) == (name, protocol))
        };
        let target = self.name_of(service);
        if let ServiceKind::ClusterIps(addresses) = &service.kind {
            for port in service.ports.iter().filter(is_asked) {
                for address in addresses {
                    add(&target, port.2, *address);
                }
            }
        } else {
            for family in ["IPv4", "IPv6"] {
                for (slice, endpoint) in self.chosen(service, family, asked) {
                    let target = format!("{}.{target}", endpoint.host());
                    for port in slice.ports.iter().filter(is_asked) {
                        add(&target, port.2, endpoint.address);
                    }
                }
            }
        }
        Reply::with(answers, additionals)
    }

    /// The endpoints in an answer for the Service.
    fn chosen<'s>(
        &self,
        service: &'s DnsService,
        family: &str,
        port: Option<DnsPort>,
    ) -> Vec<(&'s DnsSlice, &'s DnsEndpoint)> {
        let is_here = |endpoint: &DnsEndpoint| {
            !service.is_local
                || !self.has(Difference::InternalLocal)
                || endpoint.node == CLIENT_NODE
        };
        let candidates: Vec<_> = all(service)
            .filter(|(slice, endpoint)| {
                slice.family == family
                    && port.is_none_or(|port| number(slice, port).is_some())
                    && is_here(endpoint)
            })
            .collect();
        let of = |is_wanted: fn(&DnsEndpoint) -> bool| {
            let found = candidates.iter().copied();
            found
                .filter(|(_, endpoint)| is_wanted(endpoint))
                .collect::<Vec<_>>()
        };
        let ready = of(|endpoint| endpoint.is_ready);
        if ready.is_empty() && self.has(Difference::Terminating) {
            return of(still_serves);
        }
        ready
    }

    /// The endpoints that have names.
    fn endpoints<'s>(
        &self,
        service: &'s DnsService,
    ) -> impl Iterator<Item = (&'s DnsSlice, &'s DnsEndpoint)> {
        let with_terminating = self.has(Difference::Terminating);
        all(service).filter(move |(_, endpoint)| {
            endpoint.is_ready || with_terminating && still_serves(endpoint)
        })
    }

    fn endpoint(
        &self,
        name: &str,
        record_type: RecordType,
        service: &DnsService,
        host: &str,
    ) -> Reply {
        let of_host = self
            .endpoints(service)
            .filter(|(_, endpoint)| endpoint.host() == host);
        let of_host: Vec<_> = of_host.collect();
        if of_host.is_empty() {
            return Reply::no_such_name();
        }
        let (mut answers, mut additionals) = (BTreeSet::new(), BTreeSet::new());
        for (slice, endpoint) in of_host {
            let own = address_record(name, endpoint.address);
            if is_of(record_type, endpoint.address) {
                answers.insert(own);
            } else if record_type == RecordType::SRV && !self.has(Difference::PortsOfPod) {
                let target = format!("{host}.{}", self.name_of(service));
                let ports = slice.ports.iter();
                answers.extend(ports.map(|port| format!("{name} 5 SRV 0 - {} {target}", port.2)));
                if !slice.ports.is_empty() {
                    additionals.insert(address_record(&target, endpoint.address));
                }
            }
        }
        Reply::with(answers, additionals)
    }

    fn pointer(&self, name: &str, record_type: RecordType, address: IpAddr) -> Reply {
        let services = &self.cluster.services;
        let at_cluster_ip = services.iter().find(
            |service| matches!(&service.kind, ServiceKind::ClusterIps(own) if own.contains(&address)),
        );
        let targets: BTreeSet<String> = if let Some(service) = at_cluster_ip {
            [self.name_of(service)].into()
        } else {
            let of_services = services.iter().flat_map(|service| {
                let endpoints = self.endpoints(service);
                let at_address = endpoints.filter(move |(_, endpoint)| endpoint.address == address);
                at_address.map(move |(_, endpoint)| {
                    format!("{}.{}", endpoint.host(), self.name_of(service))
                })
            });
            of_services.collect()
        };
        if targets.is_empty() || record_type != RecordType::PTR {
            return Reply::forwarded(ResponseCode::NXDomain, BTreeSet::new());
        }
        let records = targets.iter();
        let records = records.map(|target| format!("{name} 5 PTR {target}"));
        Reply::with(records.collect(), BTreeSet::new())
    }

    fn alias(&self, name: &str, record_type: RecordType, target: &str) -> Reply {
        if target.parse::<IpAddr>().is_ok() {
            return Reply::no_such_name();
        }
        let is_address = matches!(record_type, RecordType::A | RecordType::AAAA);
        if !is_address && record_type != RecordType::CNAME && !self.has(Difference::AliasOtherTypes)
        {
            return Reply::no_data();
        }
        let target = format!("{target}.");
        let alias = format!("{name} 5 CNAME {target}");
        let mut reply = Reply::with([alias].into(), BTreeSet::new());
        if record_type == RecordType::CNAME {
            return reply;
        }
        let is_strict = self.has(Difference::AliasWithoutTarget);
        let Some(inside) = target.strip_suffix(".svc.cluster.local.") else {
            let (code, answers) = upstream::records(&target, record_type);
            reply.answers.extend(answers);
            reply.code = if is_strict {
                code
            } else {
                ResponseCode::NoError
            };
            return reply;
        };
        let name = inside.split('.').next().unwrap();
        let mut services = self.cluster.services.iter();
        let last = match services.find(|service| service.name == name) {
            Some(service) => self.service(&target, record_type, service),
            None => Reply::no_such_name(),
        };
        if last.answers.is_empty() && !is_strict {
            return Reply::no_data();
        }
        reply.answers.extend(last.answers);
        Reply {
            answers: reply.answers,
            ..last
        }
    }

    fn name_of(&self, service: &DnsService) -> String {
        format!(
            "{}.{}.svc.cluster.local.",
            service.name, self.cluster.namespace
        )
    }
}

fn all(service: &DnsService) -> impl Iterator<Item = (&DnsSlice, &DnsEndpoint)> {
    let slices = service.slices.iter();
    slices.flat_map(|slice| {
        slice
            .endpoints
            .iter()
            .map(move |endpoint| (slice, endpoint))
    })
}

fn still_serves(endpoint: &DnsEndpoint) -> bool {
    endpoint.is_serving && endpoint.is_terminating
}

/// The number of a port in a slice.
fn number(slice: &DnsSlice, port: DnsPort) -> Option<u16> {
    let mut ports = slice.ports.iter();
    let own = ports.find(|own| (own.0, own.1) == (port.0, port.1))?;
    Some(own.2)
}

fn is_of(record_type: RecordType, address: IpAddr) -> bool {
    record_type
        == if address.is_ipv4() {
            RecordType::A
        } else {
            RecordType::AAAA
        }
}

fn address_record(name: &str, address: IpAddr) -> String {
    let record_type = if address.is_ipv4() { "A" } else { "AAAA" };
    format!("{name} 5 {record_type} {address}")
}
