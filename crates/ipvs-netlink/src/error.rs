//! The errors of this crate, in terms of IPVS.

mod attempt;
mod cause;
mod classify;
mod kind;

pub(crate) use attempt::{Attempt, AttemptObject, Verb};
pub(crate) use cause::Cause;
pub use kind::ErrorKind;

use std::fmt;
use std::net::SocketAddr;

use crate::ServiceId;

/// Why a request to the kernel failed, or may have failed.
///
/// The text names the object, the kernel's error and, if there is one, the remedy. It is formatted on demand: an error
/// that is only counted costs one small allocation.
pub struct Error(Box<Inner>);

struct Inner {
    attempt: Attempt,
    cause: Cause,
}

impl Error {
    pub(crate) fn new(attempt: Attempt, cause: Cause) -> Self {
        Self(Box::new(Inner { attempt, cause }))
    }

    /// The meaning of the failure.
    pub fn kind(&self) -> ErrorKind {
        classify::classify(&self.0.attempt, &self.0.cause)
    }

    /// The service that the request was about.
    pub fn service(&self) -> Option<ServiceId> {
        match self.0.attempt.object {
            AttemptObject::Service(id)
            | AttemptObject::Destinations(id)
            | AttemptObject::Destination(id, _) => Some(id),
            _ => None,
        }
    }

    /// The destination that the request was about.
    pub fn destination(&self) -> Option<SocketAddr> {
        match self.0.attempt.object {
            AttemptObject::Destination(_, destination) => Some(destination),
            _ => None,
        }
    }

    /// The error number, if the kernel sent one.
    pub fn errno(&self) -> Option<i32> {
        match &self.0.cause {
            Cause::Refused(nack) => Some(nack.errno),
            Cause::Transport(error) => error.errno(),
            Cause::NoFamily => Some(libc::ENOENT),
            Cause::Unknown | Cause::Unsendable(_) | Cause::NoAnswer => None,
        }
    }

    /// The kernel's explanation (extended acknowledgement), if it sent one.
    pub fn kernel_text(&self) -> Option<&str> {
        match &self.0.cause {
            Cause::Refused(nack) => nack.message.as_deref(),
            _ => None,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner { attempt, cause } = &*self.0;
        let kind = self.kind();
        write!(f, "cannot {attempt}: ")?;
        match kind.meaning() {
            Some(meaning) => {
                write!(f, "{meaning}")?;
                attempt.fmt_names(f, kind)?;
                if let Some(errno) = self.errno() {
                    write!(f, " (errno {errno})")?;
                }
            }
            None => write!(f, "{cause}")?,
        }
        if let Some(text) = self.kernel_text() {
            write!(f, "; the kernel says: {text}")?;
        }
        attempt.fmt_remedy(f, kind)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Error")
            .field("kind", &self.kind())
            .field("attempt", &self.0.attempt.to_string())
            .field("cause", &self.0.cause)
            .finish()
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.0.cause {
            Cause::Transport(error) => Some(error),
            _ => None,
        }
    }
}
