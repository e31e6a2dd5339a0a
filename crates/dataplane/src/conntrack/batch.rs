//! Describes a batch of connection tracking entries to delete, and its result.

use std::net::IpAddr;
use std::time::Duration;

use topology_core::model::Family;

/// What identifies the entries to delete: where clients sent to, and who answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Flow {
    /// The Service's address and port.
    pub service: (IpAddr, u16),
    /// The real server's address and port.
    pub server: (IpAddr, u16),
}

/// One read of the table, and the deletions that followed from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cleaning {
    pub family: Family,
    /// How many entries were deleted.
    pub deleted: usize,
    pub took: Duration,
}

/// How a batch ended: one cleaning for each family in it.
pub type Cleaned = Result<Vec<Cleaning>, CleanError>;

/// Why a batch was not done.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CleanError {
    /// The kernel does not answer, or refuses; the error's text.
    #[error("{0}")]
    Kernel(String),
    /// The thread panicked; no batch will be done any more.
    #[error("its thread panicked")]
    ThreadLost,
}
