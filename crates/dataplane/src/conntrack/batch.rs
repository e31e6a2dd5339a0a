//! A batch of connection tracking entries to delete, and its result.

use std::net::IpAddr;
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

/// The result for one family: one read of the table and the deletions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeletionCounts {
    pub family: Family,
    /// Number of deleted entries.
    pub deleted: usize,
    pub took: Duration,
}

/// The result of a batch: one element for each family in it.
pub type FlowDeletion = Result<Vec<DeletionCounts>, FlowDeletionError>;

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
