//! What an error number means, which depends on what was tried.

use super::{Attempt, Cause, Object, Verb};

/// What a failure means for the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The service, destination or daemon exists already.
    AlreadyExists,
    /// There is no such service.
    NoSuchService,
    /// There is no such destination in the service.
    NoSuchDestination,
    /// No such daemon is running.
    NoSuchDaemon,
    /// There is no network interface with that name.
    NoSuchInterface,
    /// The kernel neither has nor could load the scheduler, or the persistence engine where one was named.
    UnknownScheduler,
    /// The process lacks `CAP_NET_ADMIN` in the initial user namespace.
    NotPermitted,
    /// The kernel neither has nor could load its IPVS module.
    ModuleMissing,
    /// The kernel is occupied; the same request may work later.
    Busy,
    /// The kernel refuses the values: an address of the wrong family or kind, thresholds or a weight out of range.
    Invalid,
    /// The kernel was built without what is asked for, such as IPv6 or the protocol.
    Unsupported,
    /// The kernel has no memory left.
    OutOfMemory,
    /// It may or may not have happened: the answer was lost. Read the object again.
    OutcomeUnknown,
    /// The table changed under every one of several readings.
    Interrupted,
    /// The kernel's answer could not be understood.
    Malformed,
    /// The socket could not be made or used.
    Socket,
    /// An error number without a meaning of its own here; see [`crate::Error::errno`].
    Other,
}

impl ErrorKind {
    /// The meaning in words; `None` where the cause says it better.
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

pub(super) fn classify(attempt: &Attempt, cause: &Cause) -> ErrorKind {
    match cause {
        Cause::Refused(nack) => refused(attempt, nack.errno),
        Cause::Unknown => ErrorKind::OutcomeUnknown,
        Cause::NoFamily => ErrorKind::ModuleMissing,
        Cause::Unsendable(_) => ErrorKind::Invalid,
        Cause::NoAnswer => ErrorKind::Malformed,
        Cause::Transport(error) => match error {
            netlink_pipeline::Error::Refused(nack) => refused(attempt, nack.errno),
            netlink_pipeline::Error::Overrun | netlink_pipeline::Error::TimedOut => {
                ErrorKind::OutcomeUnknown
            }
            netlink_pipeline::Error::Interrupted { .. } => ErrorKind::Interrupted,
            netlink_pipeline::Error::Malformed(_) | netlink_pipeline::Error::Truncated { .. } => {
                ErrorKind::Malformed
            }
            netlink_pipeline::Error::Unsendable(_) => ErrorKind::Invalid,
            netlink_pipeline::Error::Socket { .. } => match error.errno() {
                Some(libc::EPERM | libc::EACCES) => ErrorKind::NotPermitted,
                _ => ErrorKind::Socket,
            },
            _ => ErrorKind::Other,
        },
    }
}

/// The meaning of an error number. The kernel's side is `ip_vs_genl_set_cmd` and what it calls, in
/// `net/netfilter/ipvs/ip_vs_ctl.c`.
fn refused(attempt: &Attempt, errno: i32) -> ErrorKind {
    match errno {
        libc::EEXIST => ErrorKind::AlreadyExists,
        libc::ESRCH => match attempt.object {
            Object::Daemon(_) => ErrorKind::NoSuchDaemon,
            _ => ErrorKind::NoSuchService,
        },
        libc::ENOENT => match (attempt.verb, attempt.object) {
            (Verb::Add | Verb::Change, Object::Service(_)) => ErrorKind::UnknownScheduler,
            (_, Object::Destination(..)) => ErrorKind::NoSuchDestination,
            (_, Object::Service(_) | Object::Destinations(_)) => ErrorKind::NoSuchService,
            _ => ErrorKind::Other,
        },
        libc::ENODEV => ErrorKind::NoSuchInterface,
        libc::EPERM | libc::EACCES => ErrorKind::NotPermitted,
        libc::EBUSY | libc::EAGAIN => ErrorKind::Busy,
        libc::EINVAL | libc::ERANGE | libc::EMSGSIZE => ErrorKind::Invalid,
        libc::EAFNOSUPPORT | libc::EPROTONOSUPPORT | libc::EOPNOTSUPP => ErrorKind::Unsupported,
        libc::ENOMEM | libc::ENOBUFS => ErrorKind::OutOfMemory,
        _ => ErrorKind::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a refusal of something about all daemons means, which no number is special to.
    fn meaning(errno: i32) -> ErrorKind {
        refused(&Attempt::new(Verb::Read, Object::Daemons), errno)
    }

    #[test]
    fn numbers_that_a_kernel_rarely_gives_have_their_meaning() {
        for (errno, kind) in [
            (libc::EBUSY, ErrorKind::Busy),
            (libc::EAGAIN, ErrorKind::Busy),
            (libc::ENOMEM, ErrorKind::OutOfMemory),
            (libc::ENOBUFS, ErrorKind::OutOfMemory),
            (libc::EACCES, ErrorKind::NotPermitted),
            (libc::EAFNOSUPPORT, ErrorKind::Unsupported),
            (libc::ENOENT, ErrorKind::Other),
            (libc::EIO, ErrorKind::Other),
        ] {
            assert_eq!(meaning(errno), kind, "errno {errno}");
        }
    }
}
