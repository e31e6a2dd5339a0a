//! What can go wrong, in the words of IPVS.

mod attempt;
mod kind;

pub(crate) use attempt::{Attempt, Object, Verb};
pub use kind::ErrorKind;

use std::fmt;
use std::net::SocketAddr;

use crate::ServiceId;
use netlink_pipeline::{Failure, Nack, Unsendable};

/// Why something asked of the kernel did not happen, or may not have happened.
///
/// The text names the object, what the kernel said and, where there is one, the remedy. The text is made when it is
/// asked for; an error that is only counted costs one small allocation.
pub struct Error(Box<Inner>);

struct Inner {
    attempt: Attempt,
    cause: Cause,
}

/// What stood in the way.
#[derive(Debug)]
pub(crate) enum Cause {
    /// The kernel refused.
    Refused(Nack),
    /// The kernel's answer was lost.
    Unknown,
    /// The generic-netlink family does not exist.
    NoFamily,
    /// Nothing was sent, because the value cannot be put on the wire.
    Unsendable(Unsendable),
    /// The answer to a successful request did not come.
    NoAnswer,
    /// The socket failed.
    Transport(netlink_pipeline::Error),
}

impl From<Failure> for Cause {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Refused(nack) => Self::Refused(nack),
            Failure::Unknown => Self::Unknown,
            Failure::Unsendable(why) => Self::Unsendable(why),
        }
    }
}

impl From<netlink_pipeline::Error> for Cause {
    fn from(error: netlink_pipeline::Error) -> Self {
        match error {
            netlink_pipeline::Error::Refused(nack) => Self::Refused(nack),
            netlink_pipeline::Error::Unsendable(why) => Self::Unsendable(why),
            other => Self::Transport(other),
        }
    }
}

impl Error {
    pub(crate) fn new(attempt: Attempt, cause: Cause) -> Self {
        Self(Box::new(Inner { attempt, cause }))
    }

    /// What the failure means.
    pub fn kind(&self) -> ErrorKind {
        kind::classify(&self.0.attempt, &self.0.cause)
    }

    /// The service that the failure is about.
    pub fn service(&self) -> Option<ServiceId> {
        match self.0.attempt.object {
            Object::Service(id) | Object::Destinations(id) | Object::Destination(id, _) => Some(id),
            _ => None,
        }
    }

    /// The destination that the failure is about.
    pub fn destination(&self) -> Option<SocketAddr> {
        match self.0.attempt.object {
            Object::Destination(_, destination) => Some(destination),
            _ => None,
        }
    }

    /// The error number, where the kernel gave one.
    pub fn errno(&self) -> Option<i32> {
        match &self.0.cause {
            Cause::Refused(nack) => Some(nack.errno),
            Cause::Transport(error) => error.errno(),
            Cause::NoFamily => Some(libc::ENOENT),
            Cause::Unknown | Cause::Unsendable(_) | Cause::NoAnswer => None,
        }
    }

    /// The kernel's own words (extended acknowledgement), where it had any.
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

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(nack) => write!(f, "{}", std::io::Error::from_raw_os_error(nack.errno)),
            Self::Unknown => f.write_str("the kernel's answer was lost"),
            Self::NoFamily => f.write_str("the kernel knows no IPVS"),
            Self::Unsendable(why) => write!(f, "{why}"),
            Self::NoAnswer => f.write_str("the kernel sent no answer"),
            Self::Transport(error) => write!(f, "{error}"),
        }
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
