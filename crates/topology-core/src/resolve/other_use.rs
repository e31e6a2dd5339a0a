//! Keeps external addresses of Services away from what the node and the cluster depend on (PAIN-03).

use std::net::SocketAddr;

use super::finding::FindingKind;
use super::infrastructure::{AddressUse, Infrastructure};
use super::port_view::PortView;
use crate::model::{Frontend, FrontendKind};

/// The port of resolvers.
const DNS: u16 = 53;

impl PortView<'_> {
    /// The finding if the node or the cluster depends on the address, which this Service does not serve yet.
    pub(super) fn infrastructure_refused(&self) -> Option<FindingKind> {
        let used = self.other_use().filter(|_| !self.is_kept())?;
        Some(FindingKind::InfrastructureAddress(used))
    }

    /// The use of the external address besides this Service.
    ///
    /// Administrators may publish the cluster's own DNS at a load balancer address, so a resolver is kept from external
    /// IPs only, which the owner of the Service writes.
    pub(super) fn other_use(&self) -> Option<AddressUse> {
        let Frontend { kind, address } = self.frontend;
        let is_external_ip = match kind {
            FrontendKind::ClusterIp | FrontendKind::NodePort => return None,
            FrontendKind::ExternalIp => true,
            FrontendKind::LoadBalancer => false,
        };
        let known = &self.me.infrastructure;
        let own_node = self.own_node.map_or(&[][..], |node| &node.addresses);
        let is_own = known.own.contains(&address) || own_node.contains(&address);
        let is_used_at = |port| !is_own || port == self.number;
        let mut api_servers = known.api_servers.iter().chain(self.snapshot.api_servers());
        let is_api_server =
            |socket: &SocketAddr| socket.ip() == address && is_used_at(socket.port());
        let purpose = if known.gateways.contains(&address) && !is_own {
            Infrastructure::Gateway
        } else if api_servers.any(is_api_server) && !self.leads_to_api_server() {
            Infrastructure::ApiServer
        } else if is_external_ip && known.resolvers.contains(&address) && is_used_at(DNS) {
            Infrastructure::Resolver
        } else {
            return None;
        };
        Some(AddressUse {
            kind,
            address,
            port: is_own.then_some(self.number),
            purpose,
        })
    }

    /// Whether all endpoints are those of the API server: a cluster may publish it with such a Service.
    fn leads_to_api_server(&self) -> bool {
        let api_servers = self.snapshot.api_servers();
        let endpoints = self.targets.iter().flat_map(|target| {
            let endpoints = target.slice.endpoints.iter();
            endpoints.map(|endpoint| SocketAddr::new(endpoint.address, target.port))
        });
        let mut endpoints = endpoints.peekable();
        endpoints.peek().is_some() && endpoints.all(|endpoint| api_servers.contains(&endpoint))
    }

    /// Whether the address stays with the Service although others use it now.
    pub(super) fn is_kept(&self) -> bool {
        let kept = self.me.kept_addresses.get(&self.service.name);
        kept.is_some_and(|kept| kept.contains(&self.frontend.address))
    }
}
