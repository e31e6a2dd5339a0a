//! Problems of a Service that its owner should know.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use super::endpoint_limit::MOST_REAL_SERVERS;
use super::infrastructure::AddressUse;
use crate::model::{FrontendKind, ObjectName};
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
        /// Why that one gets it.
        precedence: Precedence,
    },
    /// The virtual address belongs to this Node, or outside of the Service ranges to another Node. Programming it would
    /// cut off that Node (T03).
    NodeAddress {
        /// The field that the address comes from.
        kind: FrontendKind,
        /// The virtual address.
        address: IpAddr,
        /// The Node with that address.
        node: Arc<str>,
    },
    /// Another Node lists the virtual address, which this node served before and continues to serve (D13).
    ClaimedByNode {
        /// The field that the address comes from.
        kind: FrontendKind,
        /// The virtual address.
        address: IpAddr,
        /// The Node that lists it.
        node: Arc<str>,
    },
    /// The node or the cluster depends on the external address. Programming it would cut off the node (PAIN-03).
    InfrastructureAddress(AddressUse),
    /// The same for an address that this node served before and continues to serve (D13).
    ServedInfrastructureAddress(AddressUse),
    /// The cluster IP cannot be used; it is not programmed.
    BadClusterIp {
        /// The virtual address.
        address: IpAddr,
        /// Why.
        problem: &'static str,
    },
    /// Another virtual address cannot be used; it is not programmed.
    BadExternalAddress {
        /// The field that the address comes from.
        kind: FrontendKind,
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
    /// All firewall marks are in use, so outside clients get endpoints on all nodes in spite of
    /// `externalTrafficPolicy: Local`.
    NoFirewallMark,
    /// An endpoint's address can never be a real server; the endpoint is ignored.
    BadEndpoint {
        /// Address of the endpoint.
        address: IpAddr,
        /// Why.
        problem: &'static str,
    },
    /// The endpoints are too many real servers at all ports and addresses; this node uses a part of them (D13).
    TooManyRealServers,
}

/// Why one of two Services gets a frontend that both claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Precedence {
    /// The address is its cluster IP, and an external address of the other Service.
    ClusterIp,
    /// It is older.
    Older,
    /// Its namespace and name come first.
    Name,
}

impl FindingKind {
    /// A stable code of the problem, for programs.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::FrontendTaken { .. } => "FrontendTaken",
            Self::NodeAddress { .. } => "NodeAddress",
            Self::ClaimedByNode { .. } => "ClaimedByNode",
            Self::InfrastructureAddress(_) => "InfrastructureAddress",
            Self::ServedInfrastructureAddress(_) => "ServedInfrastructureAddress",
            Self::BadClusterIp { .. } => "BadClusterIp",
            Self::BadExternalAddress { .. } => "BadExternalAddress",
            Self::NoFirewallMark => "NoFirewallMark",
            Self::PortRepeated { .. } => "PortRepeated",
            Self::BadEndpoint { .. } => "BadEndpoint",
            Self::TooManyRealServers => "TooManyRealServers",
        }
    }

    /// The use of a whole address, which the other ports of the Service have too.
    pub(super) fn whole_address(&self) -> Option<IpAddr> {
        let (Self::InfrastructureAddress(used) | Self::ServedInfrastructureAddress(used)) = self
        else {
            return None;
        };
        used.port.is_none().then_some(used.address)
    }

    /// The remedy.
    pub const fn remedy(&self) -> &'static str {
        match self {
            Self::FrontendTaken { .. } => "give one of them another address or port",
            Self::NodeAddress { .. }
            | Self::InfrastructureAddress(_)
            | Self::BadClusterIp { .. }
            | Self::BadExternalAddress { .. } => "give the Service another",
            Self::ClaimedByNode { .. } => {
                "give the Service another address, or remove this one from the status of the Node"
            }
            Self::ServedInfrastructureAddress(_) => "give the Service another address",
            Self::NoFirewallMark => "configure a mask with more bits",
            Self::PortRepeated { .. } => "remove one of the two",
            Self::BadEndpoint { .. } => "correct its EndpointSlice",
            Self::TooManyRealServers => "use fewer ports or several Services",
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
                precedence,
            } => match precedence {
                Precedence::ClusterIp => {
                    write!(f, "{frontend} is the cluster IP of Service {owner}")
                }
                Precedence::Older => write!(f, "{frontend} belongs to the older Service {owner}"),
                Precedence::Name => write!(
                    f,
                    "{frontend} belongs to Service {owner}, which is first by name"
                ),
            },
            Self::NodeAddress {
                kind,
                address,
                node,
            } => write!(
                f,
                "{} {address} is an address of Node {node} and is not programmed",
                kind.address_name()
            ),
            Self::ClaimedByNode {
                kind,
                address,
                node,
            } => write!(
                f,
                "Node {node} now lists {} {address} as its own address; this node served it before and continues",
                kind.address_name()
            ),
            Self::InfrastructureAddress(used) => used.describe_refused(f),
            Self::ServedInfrastructureAddress(used) => used.describe_served(f),
            Self::BadClusterIp { address, problem } => {
                bad_address(f, FrontendKind::ClusterIp, *address, problem)
            }
            Self::BadExternalAddress {
                kind,
                address,
                problem,
            } => bad_address(f, *kind, *address, problem),
            Self::NoFirewallMark => f.write_str(
                "no firewall mark is free, so outside clients get endpoints on all nodes, which see an address of this node",
            ),
            Self::PortRepeated { frontend } => {
                write!(f, "{frontend} is an earlier port of the same Service")
            }
            Self::BadEndpoint { address, problem } => {
                write!(f, "endpoint {address} {problem} and is left out")
            }
            Self::TooManyRealServers => write!(
                f,
                "its endpoints at all its ports and addresses are more than {MOST_REAL_SERVERS} real servers, so this node uses only a part of them"
            ),
        }
    }
}

fn bad_address(
    f: &mut fmt::Formatter<'_>,
    kind: FrontendKind,
    address: IpAddr,
    problem: &str,
) -> fmt::Result {
    let name = kind.address_name();
    write!(f, "{name} {address} {problem} and is not programmed")
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
