//! Lists the addresses under which clients reach a Service.

use std::net::IpAddr;

use super::ServicePort;

/// An address of a Service; every port of the Service is served under it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Frontend {
    /// The field of the Service that asks for it.
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

    /// The number, 1 to 65,535, under which clients reach `port` here; the kind of the frontend decides.
    pub const fn port_of(&self, port: &ServicePort) -> u16 {
        match self.kind {
            FrontendKind::ClusterIp => port.port.get(),
        }
    }
}

/// The field of a Service that asks for a frontend.
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
