//! Describes why the agent cannot start.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use dataplane::lock::LockError;
use dataplane::preflight::PreflightError;
use dataplane::routes::RouteError;

use crate::api::socket::SocketError;

#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// IPVS cannot be used.
    #[error(transparent)]
    Preflight(#[from] PreflightError),
    /// Routes or connection tracking cannot be used.
    #[error(transparent)]
    Route(#[from] RouteError),
    /// The ownership record cannot be written. Without it nothing may be created.
    #[error("the ownership record in {} cannot be used: {source}; make the folder writable, or choose another with --state-dir", directory.display())]
    Record {
        directory: PathBuf,
        source: io::Error,
    },
    #[error("signals cannot be received: {0}")]
    Signals(#[source] io::Error),
    /// Another agent runs, or the lock against it cannot be acquired.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// The socket of the local API cannot be created.
    #[error(transparent)]
    Socket(#[from] SocketError),
    /// `bindAddressHardFail` is set.
    #[error(
        "the {what} server cannot listen on {address}: {source}; free the port, choose another with {flag}, or turn bindAddressHardFail off"
    )]
    Bind {
        what: &'static str,
        flag: &'static str,
        address: SocketAddr,
        source: io::Error,
    },
    #[error("{0}")]
    Panic(String),
}
