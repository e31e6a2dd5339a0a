//! The rules that place clients on Nodes.

use topology_core::address_index::AddressSource;

/// A rule that places clients; the first that finds a Node counts. `docs/dns.md` has the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlacementRule {
    /// The Node on which the server runs has the address, or a pod range around it.
    ServerNode,
    /// The Node has the smallest pod range around the address.
    PodRange,
    /// The `PodMap` of the Node has the address.
    PodMap,
    /// The Node has the address.
    NodeAddress,
    /// An endpoint with the address is on the Node.
    Endpoint,
    /// Nothing says where the client is: it counts as a client of the Node on which the server runs.
    Unknown,
}

impl PlacementRule {
    /// The number of the rule in `docs/dns.md`.
    pub const fn number(self) -> u8 {
        match self {
            Self::ServerNode => 1,
            Self::PodRange => 2,
            Self::PodMap => 3,
            Self::NodeAddress => 4,
            Self::Endpoint => 5,
            Self::Unknown => 6,
        }
    }
}

impl From<AddressSource<'_>> for PlacementRule {
    fn from(source: AddressSource<'_>) -> Self {
        match source {
            AddressSource::PodRange(_) => Self::PodRange,
            AddressSource::PodMap => Self::PodMap,
            AddressSource::NodeAddress => Self::NodeAddress,
            AddressSource::Endpoint(_) => Self::Endpoint,
        }
    }
}
