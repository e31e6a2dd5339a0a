//! What the node and the cluster use addresses for besides Services (PAIN-03).

use std::collections::BTreeSet;
use std::fmt;
use std::net::{IpAddr, SocketAddr};

use crate::model::FrontendKind;

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
    pub purpose: Infrastructure,
}

impl AddressUse {
    pub(super) fn describe_refused(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self} is {} and is not programmed", self.purpose)
    }

    pub(super) fn describe_served(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let purpose = self.purpose;
        write!(
            f,
            "{self} is now {purpose}; this node served it before and continues"
        )
    }
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
