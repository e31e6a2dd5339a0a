//! Failures of the transport, and of single messages.

use std::io;

use crate::Unsendable;
use crate::decode_error::DecodeError;

/// Why a conversation with the kernel could not be finished.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A call on the socket failed.
    #[error("netlink socket: {call}: {source}")]
    Socket {
        /// The call.
        call: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// The receive buffer overflowed (`ENOBUFS`): answers are lost, what was asked may have been done.
    #[error("netlink socket: the receive buffer overflowed, answers are lost")]
    Overrun,
    /// No answer came in time: what was asked may have been done.
    #[error("netlink socket: no answer in time")]
    TimedOut,
    /// The kernel refused the request as a whole.
    #[error("{0}")]
    Refused(Nack),
    /// The kernel's table changed under every reading of it (`NLM_F_DUMP_INTR`).
    #[error("the kernel's table changed under {attempts} readings")]
    Interrupted {
        /// How many readings were tried.
        attempts: u32,
    },
    /// A datagram did not fit into the buffer for it.
    #[error("a datagram of {length} bytes is longer than the buffer for it")]
    Truncated {
        /// The datagram's length in bytes.
        length: usize,
    },
    /// The request cannot be sent at all.
    #[error(transparent)]
    Unsendable(#[from] Unsendable),
    /// The kernel's answer makes no sense.
    #[error(transparent)]
    Malformed(#[from] DecodeError),
}

impl Error {
    pub(crate) fn socket(call: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Socket { call, source }
    }

    /// The error number, where there is one.
    pub fn errno(&self) -> Option<i32> {
        match self {
            Self::Socket { source, .. } => source.raw_os_error(),
            Self::Refused(nack) => Some(nack.errno),
            Self::Overrun => Some(libc::ENOBUFS),
            _ => None,
        }
    }

    /// The kernel's own words (extended acknowledgement), where it had any.
    pub fn kernel_text(&self) -> Option<&str> {
        match self {
            Self::Refused(nack) => nack.message.as_deref(),
            _ => None,
        }
    }
}

/// The kernel's refusal of one message.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Nack {
    /// The error number, positive.
    pub errno: i32,
    /// The kernel's own words (`NLMSGERR_ATTR_MSG`).
    pub message: Option<Box<str>>,
    /// Where in the refused message the offending attribute starts, in bytes (`NLMSGERR_ATTR_OFFS`).
    pub offset: Option<u32>,
    /// The type of the attribute that was missing (`NLMSGERR_ATTR_MISS_TYPE`).
    pub missing: Option<u32>,
}

impl std::fmt::Display for Nack {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", io::Error::from_raw_os_error(self.errno))?;
        match &self.message {
            Some(message) => write!(f, "; the kernel says: {message}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Nack {}

/// Why one message of several did not, or may not have, worked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// The kernel refused the message.
    #[error("{0}")]
    Refused(Nack),
    /// The kernel's answer was lost; the message may have worked.
    #[error("the kernel's answer was lost")]
    Unknown,
    /// The message was not sent.
    #[error("{0}")]
    Unsendable(Unsendable),
}

/// What became of one message.
pub type Outcome = Result<(), Box<Failure>>;
