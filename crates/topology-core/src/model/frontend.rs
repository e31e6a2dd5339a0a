//! The addresses where clients reach a Service.

use std::net::IpAddr;

use super::ServicePort;

/// An address of a Service. Every port of the Service is served at it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Frontend {
    /// The Service field that the address comes from.
    pub kind: FrontendKind,
    /// The virtual address.
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

    /// The port number, 1 to 65,535, at which clients reach `port` here; it depends on the kind of the frontend.
    pub const fn port_of(&self, port: &ServicePort) -> u16 {
        match self.kind {
            FrontendKind::ClusterIp => port.port.get(),
        }
    }
}

/// The Service field that a frontend comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FrontendKind {
    /// `spec.clusterIPs`.
    ClusterIp,
}

impl FrontendKind {
    /// The name in output, as the API writes it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ClusterIp => "ClusterIP",
        }
    }
}
