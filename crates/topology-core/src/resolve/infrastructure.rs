//! Keeps external addresses of Services away from what the node and the cluster depend on (PAIN-03).

use std::collections::BTreeSet;
use std::fmt;
use std::net::{IpAddr, SocketAddr};

use super::finding::FindingKind;
use super::port_view::PortView;
use crate::model::{Frontend, FrontendKind};

/// The port of resolvers.
const DNS: u16 = 53;

/// What an address is used for besides Services.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Infrastructure {
    /// The next hop of a route of this node.
    Gateway,
    /// The API server.
    ApiServer,
    /// A resolver of this node.
    Resolver,
}

impl fmt::Display for Infrastructure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Gateway => "a gateway of this node's routes",
            Self::ApiServer => "an address of the API server",
            Self::Resolver => "a resolver of this node",
        })
    }
}

/// The use of an external address of a Service for something else.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AddressUse {
    /// The field that the address comes from.
    pub kind: FrontendKind,
    /// The virtual address.
    pub address: IpAddr,
    /// The port, if the address belongs to this node: its other ports are programmed.
    pub port: Option<u16>,
    /// The other use.
    pub user: Infrastructure,
}

impl fmt::Display for AddressUse {
    /// The address, and the port if only that is meant.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind.address_name(), self.address)?;
        self.port.map_or(Ok(()), |port| write!(f, " port {port}"))
    }
}

/// The addresses that a node depends on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NodeInfrastructure {
    /// The next hops of its routes.
    pub gateways: BTreeSet<IpAddr>,
    /// Where it connects to the API server, besides the endpoints of the Service `kubernetes`.
    pub api_servers: BTreeSet<SocketAddr>,
    /// Its resolvers.
    pub resolvers: BTreeSet<IpAddr>,
    /// Its own addresses. A virtual server at one of them leaves the other ports to the node.
    pub own: BTreeSet<IpAddr>,
}

impl NodeInfrastructure {
    /// The addresses whose use differs between the two.
    pub fn difference(&self, other: &Self) -> BTreeSet<IpAddr> {
        let sockets = self.api_servers.symmetric_difference(&other.api_servers);
        let sockets = sockets.map(SocketAddr::ip);
        let pairs = [
            (&self.gateways, &other.gateways),
            (&self.resolvers, &other.resolvers),
            (&self.own, &other.own),
        ];
        let addresses = pairs
            .into_iter()
            .flat_map(|(one, other)| one.symmetric_difference(other).copied());
        sockets.chain(addresses).collect()
    }

    /// Whether the node depends on the address.
    pub fn uses(&self, address: IpAddr) -> bool {
        let mut api_servers = self.api_servers.iter();
        self.gateways.contains(&address)
            || self.resolvers.contains(&address)
            || api_servers.any(|socket| socket.ip() == address)
    }
}

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
        let user = if known.gateways.contains(&address) && !is_own {
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
            user,
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
