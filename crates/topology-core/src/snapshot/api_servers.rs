//! The endpoints of the API server: those of the Service `kubernetes`.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};

use super::{ServiceAndSlices, Snapshot};
use crate::model::{Frontend, FrontendKind, ObjectName};

impl Snapshot {
    /// The endpoints of the Service `kubernetes` in the namespace `default`, which the API server itself writes.
    pub const fn api_servers(&self) -> &BTreeSet<SocketAddr> {
        &self.api_servers
    }

    /// Collects the endpoints again after a change of a slice of `service`.
    pub(super) fn update_api_servers(&mut self, service: &ObjectName) {
        if (&*service.namespace, &*service.name) != ("default", "kubernetes") {
            return;
        }
        let slices = self.slices(service).iter();
        let endpoints = slices.flat_map(|slice| {
            let endpoints = slice.endpoints.iter();
            endpoints.flat_map(|endpoint| {
                let ports = slice.ports.iter();
                ports.map(|port| SocketAddr::new(endpoint.address, port.port.get()))
            })
        });
        let endpoints: BTreeSet<SocketAddr> = endpoints.collect();
        if endpoints != self.api_servers {
            let old = std::mem::replace(&mut self.api_servers, endpoints);
            let both = old.iter().chain(&self.api_servers);
            self.marks.api_servers.extend(both.map(SocketAddr::ip));
        }
    }
}

/// Whether a change of these API servers can change the result for the Service: it has one of their addresses, or leads
/// to them.
pub(super) fn affects(api_servers: &BTreeSet<IpAddr>, entry: &ServiceAndSlices) -> bool {
    let Some(service) = entry.service.as_deref().filter(|_| !api_servers.is_empty()) else {
        return false;
    };
    let is_at = |frontend: &Frontend| api_servers.contains(&frontend.address);
    let can_be_kept_away = |frontend: &&Frontend| match frontend.kind {
        FrontendKind::ExternalIp | FrontendKind::LoadBalancer => true,
        FrontendKind::ClusterIp | FrontendKind::NodePort => false,
    };
    let mut frontends = service.frontends.iter().filter(can_be_kept_away).peekable();
    if frontends.peek().is_none() {
        return false;
    }
    let mut endpoints = entry.slices.iter().flat_map(|slice| &slice.endpoints);
    frontends.any(is_at) || endpoints.any(|endpoint| api_servers.contains(&endpoint.address))
}
