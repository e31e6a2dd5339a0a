//! A Pod that reports the address of another Pod.

use std::fmt;
use std::net::IpAddr;

use crate::state::write::Name;

/// Two Pods that report one address, while neither terminates.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct AddressConflict {
    pub address: IpAddr,
    /// The Pod that does not get the address, and its Node.
    pub refused: (Name, String),
    /// The Pod that has the address, and its Node.
    pub holder: (Name, String),
}

impl fmt::Display for AddressConflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            address,
            refused: ((namespace, name), node),
            holder: ((holder_namespace, holder_name), holder_node),
        } = self;
        write!(
            f,
            "the Pod {namespace}/{name} on Node {node} reports the address {address}, which the Pod \
             {holder_namespace}/{holder_name} on Node {holder_node} has: it is not in the PodMap of {node}"
        )
    }
}
