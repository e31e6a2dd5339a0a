//! Finds SRV records: the ports of a Service, with its own name or those of its endpoints.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;

use hickory_proto::rr::RecordType;
use rustc_hash::FxHashMap;
use topology_core::model::{EndpointSlice, ObjectName, Service, SlicePort};

use crate::cluster_name::{dashed, endpoint_name, service_name};
use crate::find::{existing, has_port, is_published};
use crate::port_name::PortName;
use crate::responder::{ClientQuestion, NameLookup, Responder};
use crate::weighted_endpoints::ChosenEndpoint;

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
        let slices = question.snapshot.slices(&service.name);
        let families = decision.families();
        let chosen: Vec<&ChosenEndpoint> = families
            .flat_map(|weighted| weighted.of_turn(turn))
            .collect();
        let in_slices = in_slices(&chosen, service, slices, asked);
        let named = chosen.iter().flat_map(|endpoint| {
            let all = in_slices.get(&endpoint.address).into_iter().flatten();
            let ports = all.flat_map(|one| one.ports.iter().map(move |port| (one, port)));
            ports
                .filter(move |(_, port)| asked.is_none() || port.port.get() == endpoint.port)
                .map(move |(one, port)| (endpoint, one.host(endpoint.address), port.port.get()))
        });
        let (mut records, mut additionals) = (Vec::new(), Vec::new());
        let (mut known, mut known_addresses) = (BTreeSet::new(), BTreeSet::new());
        // Ports that are the same in several slices count, too: slices of a tenant may have many.
        for (endpoint, host, port) in named.take(question.asked.most_records()) {
            let Some(target) = endpoint_name(&host, &service.name, &self.records.domain) else {
                continue;
            };
            if known_addresses.insert((host.clone(), endpoint.address)) {
                additionals.push(self.records.address(&target, endpoint.address));
            }
            // A pod has one name for both families.
            if known.insert((host, port)) {
                let weight = endpoint.weight;
                records.push(self.records.port(&question.name, weight, port, target));
            }
        }
        NameLookup::Records(records, additionals)
    }
}

impl SliceEndpoint<'_> {
    /// The first label of its name.
    fn host(&self, address: IpAddr) -> String {
        self.hostname
            .map_or_else(|| dashed(address), ToString::to_string)
    }
}

/// The chosen endpoints in the slices, by address: endpoints on the host network share one.
fn in_slices<'s>(
    chosen: &[&ChosenEndpoint],
    service: &Service,
    slices: &'s [EndpointSlice],
    asked: Option<&PortName>,
) -> FxHashMap<IpAddr, Vec<SliceEndpoint<'s>>> {
    let addresses = chosen.iter().map(|endpoint| endpoint.address);
    let mut found: FxHashMap<_, Vec<_>> = addresses.map(|it| (it, Vec::new())).collect();
    for slice in slices {
        let ports = asked_ports(slice, asked);
        for (endpoint, hostname) in slice.endpoints_with_hostnames() {
            if let Some(found) = found.get_mut(&endpoint.address)
                && is_published(service, endpoint)
            {
                found.push(SliceEndpoint { hostname, ports });
            }
        }
    }
    found
}

/// The port of the slice that the question is about; without one all.
fn asked_ports<'s>(slice: &'s EndpointSlice, asked: Option<&PortName>) -> &'s [SlicePort] {
    let Some(asked) = asked else {
        return &slice.ports;
    };
    let mut ports = slice.ports.iter();
    let port = ports.find(|port| asked.is(&port.name, port.protocol));
    port.map_or(&[], std::slice::from_ref)
}
