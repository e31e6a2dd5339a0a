//! The name servers of the domain, which are this server as clients find it: the NS records, and the addresses of `ns.dns`.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};

use hickory_proto::rr::Name;
use topology_core::model::{Family, Service};
use topology_core::snapshot::Snapshot;

use crate::cluster_name::{endpoint_name, service_name};
use crate::find::{family_of, published_hosts};
use crate::published::is_published;
use crate::responder::{ClientQuestion, NameLookup, Responder};

impl Responder {
    /// The NS records of the domain, and the addresses of the names in them.
    pub(crate) fn name_servers(&self, question: &ClientQuestion<'_>) -> NameLookup {
        let servers = self.own_names(question.snapshot);
        let names: BTreeSet<&Name> = servers.iter().map(|(name, _)| name).collect();
        let names = names.into_iter().cloned();
        let records = names.map(|name| self.records.name_server(&question.name, name));
        let addresses = servers.iter();
        let addresses = addresses.map(|(name, address)| self.records.address(name, *address));
        NameLookup::Records(records.collect(), addresses.collect())
    }

    /// The addresses of all name servers.
    pub(crate) fn name_server_addresses(&self, question: &ClientQuestion<'_>) -> NameLookup {
        let family = family_of(question.asked.record_type);
        let servers = self.own_names(question.snapshot).into_iter();
        let addresses: BTreeSet<IpAddr> = servers
            .map(|(_, address)| address)
            .filter(|address| Some(Family::of(*address)) == family)
            .collect();
        NameLookup::Records(self.addresses_of(question, addresses), Vec::new())
    }

    /// The names in Services that have this server as an endpoint, with their addresses. Without such a Service it is
    /// `ns.dns`.
    fn own_names(&self, snapshot: &Snapshot) -> BTreeSet<(Name, IpAddr)> {
        let mut names = BTreeSet::new();
        for own in &self.endpoints {
            let users = self.addresses.users(own.ip()).iter();
            let users = users.filter(|user| !user.is_cluster_ip);
            for service in users.filter_map(|user| snapshot.service(&user.service)) {
                if has_endpoint(snapshot, service, *own) {
                    names.extend(self.names_in(snapshot, service, own.ip()));
                }
            }
        }
        if names.is_empty() {
            let own = self.endpoints.iter();
            names.extend(own.map(|own| (self.records.server_name(), own.ip())));
        }
        names
    }

    /// The name of a Service with its cluster IPs; of a headless one the names of the endpoint.
    fn names_in(
        &self,
        snapshot: &Snapshot,
        service: &Service,
        endpoint: IpAddr,
    ) -> Vec<(Name, IpAddr)> {
        let domain = &self.records.domain;
        if service.is_headless() {
            let hosts = published_hosts(service, snapshot.slices(&service.name), endpoint);
            let hosts = hosts.into_iter();
            let names = hosts.filter_map(|host| endpoint_name(&host, &service.name, domain));
            return names.map(|name| (name, endpoint)).collect();
        }
        let Some(name) = service_name(&service.name, domain) else {
            return Vec::new();
        };
        let addresses = service.cluster_ips();
        addresses.map(|address| (name.clone(), address)).collect()
    }
}

/// Whether the Service sends clients to this address and port.
fn has_endpoint(snapshot: &Snapshot, service: &Service, at: SocketAddr) -> bool {
    snapshot.slices(&service.name).iter().any(|slice| {
        let mut ports = slice.ports.iter();
        let mut endpoints = slice.endpoints.iter();
        ports.any(|port| port.port.get() == at.port())
            && endpoints
                .any(|endpoint| endpoint.address == at.ip() && is_published(service, endpoint))
    })
}
