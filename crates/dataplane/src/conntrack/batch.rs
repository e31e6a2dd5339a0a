//! A batch of connection tracking entries to delete, and its result.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use topology_core::model::Family;

/// The entries of one real server: the destination that clients used, and the endpoint that answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Flow {
    /// The Service's address and port.
    pub service: (IpAddr, u16),
    /// The real server's address and port.
    pub server: (IpAddr, u16),
}

impl Flow {
    /// The entries of a real server, whatever destination clients used. A virtual server for a firewall mark has many
    /// addresses.
    pub fn of_server(server: (IpAddr, u16)) -> Self {
        let any = match server.0 {
            IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        };
        Self {
            service: (any, 0),
            server,
        }
    }
}

/// The result for one family: one read of the table and the deletions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeletionCounts {
    pub family: Family,
    /// Number of deleted entries.
    pub deleted: usize,
    pub took: Duration,
}

/// What the kernel did with a batch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeletedFlows {
    /// One element for each family in the batch.
    pub counts: Vec<DeletionCounts>,
    /// Flows of the batch with an entry that still exists, and the kernel's error.
    pub refused: BTreeMap<Flow, String>,
}

/// The result of a batch.
pub type FlowDeletion = Result<DeletedFlows, FlowDeletionError>;

/// Why a batch failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FlowDeletionError {
    /// The kernel does not reply, or refuses the request; its error as text.
    #[error("{0}")]
    Kernel(String),
    /// The thread panicked; no further batch will be processed.
    #[error("its thread panicked")]
    ThreadLost,
}
