//! Nodes: names, labels and addresses.

use std::net::IpAddr;
use std::sync::Arc;

use super::Labels;

/// A Node, as far as it places endpoints and clients.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Node {
    /// `metadata.name`.
    pub name: Arc<str>,
    /// `metadata.labels`.
    pub labels: Labels,
    /// `status.addresses` of type `InternalIP`, in order.
    pub addresses: Vec<IpAddr>,
}
