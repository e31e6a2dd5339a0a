//! What a Service's owner should know.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use crate::model::ObjectName;
use crate::snapshot::FrontendKey;

/// Something about a Service port that is not as its owner wants it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The Service.
    pub service: ObjectName,
    /// The name of the port, empty if it has none.
    pub port_name: Arc<str>,
    /// What it is.
    pub kind: FindingKind,
}

/// What was found, with what it takes to say it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FindingKind {
    /// Another Service has the same address, protocol and port; this one is not programmed.
    FrontendTaken {
        /// What both claim.
        frontend: FrontendKey,
        /// Who has it.
        owner: ObjectName,
        /// Whether it has it because it is older; otherwise its name comes first.
        is_older: bool,
    },
    /// The virtual address is this Node's own, or outside of the Service ranges that of another Node; programming it
    /// would cut that node off (T03).
    NodeAddress {
        /// The address.
        address: IpAddr,
        /// The Node that has it.
        node: Arc<str>,
    },
    /// The virtual address can never be one; it is not programmed.
    BadClusterIp {
        /// The address.
        address: IpAddr,
        /// What it is.
        problem: &'static str,
    },
    /// An earlier port of the Service has the same number and protocol; this one is not programmed.
    PortRepeated {
        /// What both claim.
        frontend: FrontendKey,
    },
    /// An endpoint's address can never be a real server; it is left out.
    BadEndpoint {
        /// The address.
        address: IpAddr,
        /// What it is.
        problem: &'static str,
    },
}

impl FindingKind {
    /// The name of the finding, stable, for programs.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::FrontendTaken { .. } => "FrontendTaken",
            Self::NodeAddress { .. } => "NodeAddress",
            Self::BadClusterIp { .. } => "BadClusterIp",
            Self::PortRepeated { .. } => "PortRepeated",
            Self::BadEndpoint { .. } => "BadEndpoint",
        }
    }

    /// What its owner can do.
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
    /// What is wrong, without the remedy.
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
