//! Keeps the addresses of this machine.

use std::collections::BTreeSet;
use std::net::IpAddr;

use dataplane::routes::addresses::{Candidates, Interface, NodeIps};

/// The addresses of this machine, as last read.
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

    /// The link that has the address, unless it is `kube-ipvs0`; `None` if the address is not this machine's own.
    pub(super) fn link_of(&self, address: IpAddr) -> Option<&str> {
        let mine = self
            .interfaces
            .iter()
            .find(|interface| interface.address == address);
        mine.map(|interface| interface.link.as_str())
    }

    /// Replaces what was read before. Returns the addresses that came or went.
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
