//! The Pods on a Node, by address.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use super::ObjectName;

/// A `PodMap`: Pods on a Node that have an address of their own.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct NodePods {
    /// The Node.
    pub node: Arc<str>,
    /// The Pod at each address.
    pub pods: BTreeMap<IpAddr, ObjectName>,
}
