//! The addresses where clients reach a Service.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::{Family, ServicePort};

/// An address of a Service. Every port of the Service that has a number for the kind is served at it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Frontend {
    /// The Service field that the address comes from.
    pub kind: FrontendKind,
    /// The virtual address. For a node port it is the unspecified address of the family: it stands for each of
    /// [`Viewpoint::node_port_addresses`](crate::resolve::Viewpoint::node_port_addresses).
    pub address: IpAddr,
}

impl Frontend {
    /// A frontend for an address of `spec.clusterIPs`.
    pub const fn cluster_ip(address: IpAddr) -> Self {
        Self {
            kind: FrontendKind::ClusterIp,
            address,
        }
    }

    /// A frontend for the node ports of a Service in one family.
    pub const fn node_port(family: Family) -> Self {
        let address = match family {
            Family::V4 => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            Family::V6 => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        };
        Self {
            kind: FrontendKind::NodePort,
            address,
        }
    }

    /// A frontend for an address of `spec.externalIPs`.
    pub const fn external_ip(address: IpAddr) -> Self {
        Self {
            kind: FrontendKind::ExternalIp,
            address,
        }
    }

    /// A frontend for an address of `status.loadBalancer.ingress`.
    pub const fn load_balancer(address: IpAddr) -> Self {
        Self {
            kind: FrontendKind::LoadBalancer,
            address,
        }
    }

    /// The port number at which clients reach `port` here, 1 to 65,535; `None` if the port is not served here.
    pub fn port_of(&self, port: &ServicePort) -> Option<u16> {
        match self.kind {
            FrontendKind::ClusterIp | FrontendKind::ExternalIp | FrontendKind::LoadBalancer => {
                Some(port.port.get())
            }
            FrontendKind::NodePort => port.node_port.map(u16::from),
        }
    }
}

/// The Service field that a frontend comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FrontendKind {
    /// `spec.clusterIPs`.
    ClusterIp,
    /// `spec.ports[].nodePort`, at addresses of the node.
    NodePort,
    /// `spec.externalIPs`.
    ExternalIp,
    /// `status.loadBalancer.ingress[].ip`.
    LoadBalancer,
}

impl FrontendKind {
    /// Whether clients outside of the cluster use it, so that `externalTrafficPolicy` applies.
    pub const fn is_external(self) -> bool {
        match self {
            Self::ClusterIp => false,
            Self::NodePort | Self::ExternalIp | Self::LoadBalancer => true,
        }
    }

    /// The name of an address of this kind in messages.
    pub const fn address_name(self) -> &'static str {
        match self {
            Self::ClusterIp => "clusterIP",
            Self::NodePort => "node address",
            Self::ExternalIp => "external IP",
            Self::LoadBalancer => "load balancer address",
        }
    }

    /// The name in output, as the API writes it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ClusterIp => "ClusterIP",
            Self::NodePort => "NodePort",
            Self::ExternalIp => "ExternalIP",
            Self::LoadBalancer => "LoadBalancer",
        }
    }
}
