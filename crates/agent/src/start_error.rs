//! Says why the agent cannot start.

use std::io;
use std::path::PathBuf;

use dataplane::lock::LockError;
use dataplane::preflight::PreflightError;
use dataplane::routes::RouteError;

use crate::api::socket::SocketError;

/// Why the agent cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// IPVS cannot be used.
    #[error(transparent)]
    Preflight(#[from] PreflightError),
    /// Routes or connection tracking cannot be used.
    #[error(transparent)]
    Route(#[from] RouteError),
    /// The ownership record cannot be kept, and without it nothing may be created.
    #[error("the ownership record in {} cannot be used: {source}; make the folder writable, or choose another with --state-dir", directory.display())]
    Record {
        /// The state directory.
        directory: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Signals cannot be received.
    #[error("signals cannot be received: {0}")]
    Signals(#[source] io::Error),
    /// Another agent runs, or the lock against it cannot be had.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// The socket of the local API cannot be made.
    #[error(transparent)]
    Socket(#[from] SocketError),
    /// A server of the agent panicked.
    #[error("{0}")]
    Panic(String),
}
