//! Errors of the transport, and of single requests.

use std::io;

use crate::Unsendable;
use crate::decode_error::DecodeError;

/// Why a conversation with the kernel failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A call on the socket failed.
    #[error("netlink socket: {call}: {source}")]
    Socket {
        /// The system call.
        call: &'static str,
        /// The system's error.
        source: io::Error,
    },
    /// The receive buffer overflowed (`ENOBUFS`): replies are lost, and requests may have been carried out.
    #[error("netlink socket: the receive buffer overflowed, answers are lost")]
    Overrun,
    /// No reply came in time; requests may have been carried out.
    #[error("netlink socket: no answer in time")]
    TimedOut,
    /// The kernel refused the request as a whole.
    #[error("{0}")]
    Refused(Nack),
    /// The kernel's table changed during every attempt to dump it (`NLM_F_DUMP_INTR`).
    #[error("the kernel's table changed under {attempts} readings")]
    Interrupted {
        /// How many attempts were made.
        attempts: u32,
    },
    /// A datagram is longer than the receive buffer.
    #[error("a datagram of {length} bytes is longer than the buffer for it")]
    Truncated {
        /// The datagram's length in bytes.
        length: usize,
    },
    /// The request cannot be sent.
    #[error(transparent)]
    Unsendable(#[from] Unsendable),
    /// The kernel's reply cannot be decoded.
    #[error(transparent)]
    Malformed(#[from] DecodeError),
}

impl Error {
    pub(crate) fn socket(call: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Socket { call, source }
    }

    /// The error number, if there is one.
    pub fn errno(&self) -> Option<i32> {
        match self {
            Self::Socket { source, .. } => source.raw_os_error(),
            Self::Refused(nack) => Some(nack.errno),
            Self::Overrun => Some(libc::ENOBUFS),
            _ => None,
        }
    }

    /// The kernel's explanation (extended acknowledgement), if it sent one.
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
    /// The kernel's explanation (`NLMSGERR_ATTR_MSG`).
    pub message: Option<Box<str>>,
    /// Offset of the offending attribute in the refused message, in bytes (`NLMSGERR_ATTR_OFFS`).
    pub offset: Option<u32>,
    /// Type of the missing attribute (`NLMSGERR_ATTR_MISS_TYPE`).
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

/// Why one of several requests failed, or may have failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// The kernel refused the request.
    #[error("{0}")]
    Refused(Nack),
    /// The kernel's reply was lost; the request may have been carried out.
    #[error("the kernel's answer was lost")]
    Unknown,
    /// The request was not sent.
    #[error("{0}")]
    Unsendable(Unsendable),
}

/// The result of one request.
pub type RequestResult = Result<(), Box<RequestError>>;
