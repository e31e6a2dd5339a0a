//! A Pod that reports the address of another Pod.

use std::fmt;
use std::net::IpAddr;

use topology_core::model::ObjectName;

/// Two Pods that report one address, while neither terminates.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct AddressConflict {
    pub address: IpAddr,
    /// The Pod that does not get the address, and its Node.
    pub refused: (ObjectName, String),
    /// The Pod that has the address, and its Node.
    pub holder: (ObjectName, String),
}

impl fmt::Display for AddressConflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            address,
            refused: (refused, node),
            holder: (holder, holder_node),
        } = self;
        write!(
            f,
            "the Pod {refused} on Node {node} reports the address {address}, which the Pod {holder} on \
             Node {holder_node} has: it is not in the PodMap of {node}"
        )
    }
}
