//! Why the agent cannot lock its state folder or network namespace.

use std::io;
use std::path::PathBuf;

/// Why the lock cannot be acquired.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another agent holds the lock.
    #[error("another agent (process {pid}) uses the state folder {}; stop it first", directory.display())]
    Taken {
        /// The holder's process id in its own PID namespace, or `unknown`.
        pid: String,
        directory: PathBuf,
    },
    /// The file system returned an error.
    #[error("the state folder {} cannot be locked: {source}; make it writable, or choose another with --state-dir", directory.display())]
    Io {
        directory: PathBuf,
        source: io::Error,
    },
    /// Another agent runs in the network namespace.
    #[error(
        "another agent (process {}) runs in this network namespace, and both would write one IPVS table; stop it first",
        .0.map_or_else(|| "unknown".to_owned(), |pid| pid.to_string())
    )]
    TakenNamespace(Option<i32>),
    /// The kernel refuses the lock of the network namespace.
    #[error("the network namespace cannot be locked: {0}")]
    Namespace(io::Error),
}
