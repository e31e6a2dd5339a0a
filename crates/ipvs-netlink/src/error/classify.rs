//! Derives the meaning of a failure. That of an error number depends on the attempted operation.

use super::attempt::{Attempt, AttemptObject, Verb};
use super::cause::Cause;
use super::kind::ErrorKind;

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

/// The meaning of an error number. Source: `ip_vs_genl_set_cmd` and the functions that it calls, in
/// `net/netfilter/ipvs/ip_vs_ctl.c`.
fn refused(attempt: &Attempt, errno: i32) -> ErrorKind {
    match errno {
        libc::EEXIST => ErrorKind::AlreadyExists,
        libc::ESRCH => match attempt.object {
            AttemptObject::Daemon(_) => ErrorKind::NoSuchDaemon,
            _ => ErrorKind::NoSuchService,
        },
        libc::ENOENT => match (attempt.verb, attempt.object) {
            (Verb::Add | Verb::Change, AttemptObject::Service(_)) => ErrorKind::UnknownScheduler,
            (_, AttemptObject::Destination(..)) => ErrorKind::NoSuchDestination,
            (_, AttemptObject::Service(_) | AttemptObject::Destinations(_)) => {
                ErrorKind::NoSuchService
            }
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

    /// Classifies an error of a request about all daemons, for which no number has a special meaning.
    fn meaning(errno: i32) -> ErrorKind {
        refused(&Attempt::new(Verb::Read, AttemptObject::Daemons), errno)
    }

    #[test]
    fn rare_error_numbers_have_their_meaning() {
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
