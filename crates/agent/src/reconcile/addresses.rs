//! The addresses of this node.

use std::collections::BTreeSet;
use std::net::IpAddr;

use dataplane::routes::addresses::{Candidates, Interface, NodeIps};

/// The addresses of this node, as last read.
#[derive(Debug, Clone, Default)]
pub(super) struct HostAddresses {
    interfaces: Vec<Interface>,
    default_sources: Vec<IpAddr>,
}

impl HostAddresses {
    pub(super) fn new(interfaces: Vec<Interface>, default_sources: Vec<IpAddr>) -> Self {
        Self {
            interfaces,
            default_sources,
        }
    }

    /// The link with the address, except `kube-ipvs0`; `None` if this node does not have the address.
    pub(super) fn link_of(&self, address: IpAddr) -> Option<&str> {
        let mine = self
            .interfaces
            .iter()
            .find(|interface| interface.address == address);
        mine.map(|interface| interface.link.as_str())
    }

    /// Replaces the addresses. Returns those that were added or removed.
    pub(super) fn replace(&mut self, read: Self) -> BTreeSet<IpAddr> {
        let before = self.all();
        *self = read;
        before.symmetric_difference(&self.all()).copied().collect()
    }

    /// Chooses the node's address in each family.
    pub(super) fn node_ips(&self, flags: &[IpAddr], node: &[IpAddr]) -> NodeIps {
        let candidates = Candidates {
            flags,
            node,
            default_route: &self.default_sources,
        };
        candidates.choose(&self.interfaces)
    }

    pub(super) fn interfaces(&self) -> &[Interface] {
        &self.interfaces
    }

    pub(super) fn all(&self) -> BTreeSet<IpAddr> {
        self.interfaces
            .iter()
            .map(|interface| interface.address)
            .collect()
    }
}
