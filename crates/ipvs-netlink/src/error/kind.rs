//! What a failure means for the caller.

/// What a failure means for the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The service, destination or daemon exists already.
    AlreadyExists,
    /// The service does not exist.
    NoSuchService,
    /// The destination does not exist in the service.
    NoSuchDestination,
    /// The daemon is not running.
    NoSuchDaemon,
    /// The network interface does not exist.
    NoSuchInterface,
    /// The kernel does not have, and could not load, the scheduler or the requested persistence engine.
    UnknownScheduler,
    /// The process lacks `CAP_NET_ADMIN` in the initial user namespace.
    NotPermitted,
    /// The kernel does not have, and could not load, its IPVS module.
    ModuleMissing,
    /// The kernel is busy; the same request may succeed later.
    Busy,
    /// The kernel refuses a value: an address of the wrong family or type, or a threshold or weight out of range.
    Invalid,
    /// The kernel was built without the requested feature, such as IPv6 or the protocol.
    Unsupported,
    /// The kernel is out of memory.
    OutOfMemory,
    /// The reply was lost, so the request may have been carried out. Read the object again.
    OutcomeUnknown,
    /// The table changed during every attempt to dump it.
    Interrupted,
    /// The kernel's reply could not be decoded.
    Malformed,
    /// The socket could not be opened or used.
    Socket,
    /// Another error number; see [`crate::Error::errno`].
    Other,
}

impl ErrorKind {
    /// The text for it; `None` if the cause is more precise.
    pub(super) fn meaning(self) -> Option<&'static str> {
        Some(match self {
            Self::AlreadyExists => "it exists already",
            Self::NoSuchService => "there is no such service",
            Self::NoSuchDestination => "there is no such destination",
            Self::NoSuchDaemon => "it is not running",
            Self::NoSuchInterface => "there is no such network interface",
            Self::UnknownScheduler => "unknown scheduler",
            Self::NotPermitted => "not permitted",
            Self::ModuleMissing => "the kernel's IPVS module is not loaded",
            Self::Busy => "the kernel is busy",
            Self::OutOfMemory => "the kernel is out of memory",
            Self::Unsupported => "this kernel does not support it",
            Self::OutcomeUnknown
            | Self::Invalid
            | Self::Interrupted
            | Self::Malformed
            | Self::Socket
            | Self::Other => return None,
        })
    }
}
