//! The error that the transport or the kernel reported.

use std::fmt;

use netlink_pipeline::{Nack, RequestError, Unsendable};

/// Why the operation failed.
#[derive(Debug)]
pub(crate) enum Cause {
    /// The kernel refused the request.
    Refused(Nack),
    /// The reply of the kernel was lost.
    Unknown,
    /// The generic-netlink family does not exist.
    NoFamily,
    /// Nothing was sent, because a value cannot be encoded.
    Unsendable(Unsendable),
    /// The request succeeded, but no reply came.
    NoAnswer,
    /// The socket failed.
    Transport(netlink_pipeline::Error),
}

impl From<RequestError> for Cause {
    fn from(failure: RequestError) -> Self {
        match failure {
            RequestError::Refused(nack) => Self::Refused(nack),
            RequestError::Unknown => Self::Unknown,
            RequestError::Unsendable(why) => Self::Unsendable(why),
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
