//! Problems of a Service that its owner should know.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use crate::model::ObjectName;
use crate::snapshot::FrontendKey;

/// A problem of a Service port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Namespace and name of the Service.
    pub service: ObjectName,
    /// The name of the port; empty if it has none.
    pub port_name: Arc<str>,
    /// The problem and its details.
    pub kind: FindingKind,
}

/// A problem and its details.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FindingKind {
    /// Another Service has the same address, protocol and port; this Service is not programmed there.
    FrontendTaken {
        /// The frontend that both claim.
        frontend: FrontendKey,
        /// The Service that gets it.
        owner: ObjectName,
        /// Whether the owner is older; otherwise its name comes first.
        is_older: bool,
    },
    /// The virtual address belongs to this Node, or outside of the Service ranges to another Node. Programming it would
    /// cut off that Node (T03).
    NodeAddress {
        /// The virtual address.
        address: IpAddr,
        /// The Node with that address.
        node: Arc<str>,
    },
    /// The virtual address cannot be used; it is not programmed.
    BadClusterIp {
        /// The virtual address.
        address: IpAddr,
        /// Why.
        problem: &'static str,
    },
    /// An earlier port of the Service has the same number and protocol; this port is not programmed.
    PortRepeated {
        /// The frontend that both claim.
        frontend: FrontendKey,
    },
    /// An endpoint's address can never be a real server; the endpoint is ignored.
    BadEndpoint {
        /// Address of the endpoint.
        address: IpAddr,
        /// Why.
        problem: &'static str,
    },
}

impl FindingKind {
    /// A stable code of the problem, for programs.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::FrontendTaken { .. } => "FrontendTaken",
            Self::NodeAddress { .. } => "NodeAddress",
            Self::BadClusterIp { .. } => "BadClusterIp",
            Self::PortRepeated { .. } => "PortRepeated",
            Self::BadEndpoint { .. } => "BadEndpoint",
        }
    }

    /// The remedy.
    pub const fn remedy(&self) -> &'static str {
        match self {
            Self::FrontendTaken { .. } => "give one of them another clusterIP or port",
            Self::NodeAddress { .. } | Self::BadClusterIp { .. } => "give the Service another",
            Self::PortRepeated { .. } => "remove one of the two",
            Self::BadEndpoint { .. } => "correct its EndpointSlice",
        }
    }
}

impl fmt::Display for FindingKind {
    /// The problem, without the remedy.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::FrontendTaken {
                frontend,
                owner,
                is_older,
            } => {
                let socket = SocketAddr::new(frontend.address, frontend.port);
                let protocol = frontend.protocol;
                if *is_older {
                    write!(
                        f,
                        "{protocol} {socket} belongs to the older Service {owner}"
                    )
                } else {
                    write!(
                        f,
                        "{protocol} {socket} belongs to Service {owner}, which is first by name"
                    )
                }
            }
            Self::NodeAddress { address, node } => write!(
                f,
                "clusterIP {address} is an address of Node {node} and is not programmed"
            ),
            Self::BadClusterIp { address, problem } => {
                write!(f, "clusterIP {address} {problem} and is not programmed")
            }
            Self::PortRepeated { frontend } => write!(
                f,
                "{} {} is an earlier port of the same Service",
                frontend.protocol, frontend.port,
            ),
            Self::BadEndpoint { address, problem } => {
                write!(f, "endpoint {address} {problem} and is left out")
            }
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Service {}", self.service)?;
        if !self.port_name.is_empty() {
            write!(f, " port {}", self.port_name)?;
        }
        write!(f, ": {}; {}", self.kind, self.kind.remedy())
    }
}
