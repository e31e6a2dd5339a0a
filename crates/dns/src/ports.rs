//! Finds SRV records: the ports of a Service, with its own name or those of its endpoints.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;

use hickory_proto::rr::RecordType;
use rustc_hash::{FxHashMap, FxHashSet};
use topology_core::model::{EndpointSlice, ObjectName, Service, SlicePort};

use crate::cluster_name::{dashed, endpoint_name, service_name};
use crate::find::{existing, has_port};
use crate::port_name::{PortName, asked_ports};
use crate::published::is_published;
use crate::responder::{ClientQuestion, NameLookup, Responder};
use crate::weighted_endpoints::ChosenEndpoint;

/// How many ports are looked at for each record of an answer: ports with one number are one record, and slices of a tenant
/// may have 20,000.
const MOST_REPEATED: usize = 16;

/// The endpoints with one address.
#[derive(Debug)]
struct InSlices<'s> {
    /// The first label of the names of those without a hostname.
    dashed: String,
    endpoints: Vec<SliceEndpoint<'s>>,
}

/// An endpoint in one of the slices that have its address.
#[derive(Debug)]
struct SliceEndpoint<'s> {
    hostname: Option<&'s Arc<str>>,
    /// Those that the question is about.
    ports: &'s [SlicePort],
}

impl Responder {
    /// What the name of a port has.
    pub(crate) fn port(
        &mut self,
        question: &ClientQuestion<'_>,
        service: &ObjectName,
        port: &PortName,
    ) -> NameLookup {
        let Some(service) = existing(question.snapshot, service) else {
            return NameLookup::NoSuchName;
        };
        let is_asked = |name: &str, protocol| port.is(name, protocol);
        if !has_port(question.snapshot, service, is_asked) {
            NameLookup::NoSuchName
        } else if question.asked.record_type == RecordType::SRV {
            self.ports(question, service, Some(port))
        } else {
            NameLookup::NO_RECORDS
        }
    }

    /// The records of a port, or of all, and the addresses of the names in them.
    pub(crate) fn ports(
        &mut self,
        question: &ClientQuestion<'_>,
        service: &Service,
        asked: Option<&PortName>,
    ) -> NameLookup {
        if service.is_headless() {
            return self.headless_ports(question, service, asked);
        }
        let Some(target) = service_name(&service.name, &self.records.domain) else {
            return NameLookup::NO_RECORDS;
        };
        let addresses = service.cluster_ips();
        let additionals = addresses.map(|address| self.records.address(&target, address));
        let additionals = additionals.collect();
        let ports = service.ports.iter();
        let ports = ports.filter(|port| asked.is_none_or(|one| one.is(&port.name, port.protocol)));
        // Ports of several protocols may have one number.
        let numbers: BTreeSet<u16> = ports.map(|port| port.port.get()).collect();
        let records = numbers
            .into_iter()
            .take(question.asked.most_records())
            .map(|number| self.records.port(&question.name, 1, number, target.clone()));
        NameLookup::Records(records.collect(), additionals)
    }

    /// The ports of the endpoints in an answer for the name; for a port it decides alone.
    fn headless_ports(
        &mut self,
        question: &ClientQuestion<'_>,
        service: &Service,
        asked: Option<&PortName>,
    ) -> NameLookup {
        let about = question.about(&service.name);
        let decision = match asked {
            Some(port) => self.decisions.of_port(about, port),
            None => self.decisions.of_name(about),
        };
        let turn_of = asked.map_or_else(Arc::default, |port| Arc::clone(&port.name));
        let turn = self.turn(question, &service.name, &turn_of);
        let most = question.asked.most_records();
        let mut endpoints = decision.endpoints.named(turn);
        let chosen: Vec<&ChosenEndpoint> = endpoints.by_ref().take(most).collect();
        let mut is_partial = endpoints.next().is_some();
        let slices = question.snapshot.slices(&service.name);
        let in_slices = in_slices(&chosen, service, slices, asked);
        let mut candidates = candidates(&chosen, &in_slices, asked.is_none());
        let (mut records, mut additionals) = (Vec::new(), Vec::new());
        let (mut known, mut known_addresses) = (FxHashSet::default(), FxHashSet::default());
        for (endpoint, host, port) in candidates.by_ref().take(most * MOST_REPEATED) {
            let is_new_address = known_addresses.insert((host, endpoint.address));
            // A pod has one name for both families.
            let is_new = known.insert((host, port));
            if !is_new && !is_new_address {
                continue;
            }
            let Some(target) = endpoint_name(host, &service.name, &self.records.domain) else {
                continue;
            };
            if is_new_address {
                additionals.push(self.records.address(&target, endpoint.address));
            }
            if is_new {
                let weight = endpoint.weight;
                records.push(self.records.port(&question.name, weight, port, target));
            }
            if records.len() >= most {
                break;
            }
        }
        is_partial |= candidates.next().is_some();
        if is_partial {
            NameLookup::Partial(records, additionals)
        } else {
            NameLookup::Records(records, additionals)
        }
    }
}

/// The ports of the chosen endpoints, with the first label of the name of each; without `all` only those that were chosen.
fn candidates<'c>(
    chosen: &'c [&ChosenEndpoint],
    in_slices: &'c FxHashMap<IpAddr, InSlices<'_>>,
    all: bool,
) -> impl Iterator<Item = (&'c ChosenEndpoint, &'c str, u16)> {
    chosen.iter().flat_map(move |endpoint| {
        let found = in_slices.get(&endpoint.address).into_iter();
        let found = found.flat_map(InSlices::ports);
        found
            .filter(move |(_, port)| all || *port == endpoint.port)
            .map(|(host, port)| (*endpoint, host, port))
    })
}

impl InSlices<'_> {
    /// The first label of the name of each endpoint, with each of its ports.
    fn ports(&self) -> impl Iterator<Item = (&str, u16)> {
        self.endpoints.iter().flat_map(move |endpoint| {
            let host = endpoint.hostname.map_or(&*self.dashed, |own| &**own);
            let ports = endpoint.ports.iter();
            ports.map(move |port| (host, port.port.get()))
        })
    }
}

/// The chosen endpoints in the slices, by address: endpoints on the host network share one.
fn in_slices<'s>(
    chosen: &[&ChosenEndpoint],
    service: &Service,
    slices: &'s [EndpointSlice],
    asked: Option<&PortName>,
) -> FxHashMap<IpAddr, InSlices<'s>> {
    let empty = |endpoint: &&ChosenEndpoint| {
        let dashed = dashed(endpoint.address);
        let endpoints = Vec::new();
        (endpoint.address, InSlices { dashed, endpoints })
    };
    let mut found: FxHashMap<_, _> = chosen.iter().map(empty).collect();
    for slice in slices {
        let ports = asked_ports(slice, asked);
        for (position, endpoint) in slice.endpoints.iter().enumerate() {
            if let Some(found) = found.get_mut(&endpoint.address)
                && is_published(service, endpoint)
            {
                // Looked up only here: the table of hostnames is slow, and few of the endpoints are chosen.
                let hostname = slice.hostnames.get(&position);
                found.endpoints.push(SliceEndpoint { hostname, ports });
            }
        }
    }
    found
}
