//! Netlink messages in a datagram (`struct nlmsghdr` in `include/uapi/linux/netlink.h`).

use crate::attribute::align;
use crate::decode_error::DecodeError;

/// Bytes of a message's header.
pub(crate) const HEADER: usize = 16;

/// `NLMSG_NOOP`: to be skipped.
pub(crate) const NOOP: u16 = 1;
/// `NLMSG_ERROR`: a refusal, or an acknowledgement if its error number is 0.
pub(crate) const ERROR: u16 = 2;
/// `NLMSG_DONE`: the end of a dump.
pub(crate) const DONE: u16 = 3;

/// `NLM_F_REQUEST`: on every message to the kernel.
pub(crate) const FLAG_REQUEST: u16 = 0x1;
/// `NLM_F_ACK`: asks for an answer in any case.
pub(crate) const FLAG_ACK: u16 = 0x4;
/// `NLM_F_DUMP_INTR`: the table changed under the dump.
pub(crate) const FLAG_INTERRUPTED: u16 = 0x10;
/// `NLM_F_DUMP`: asks for the whole table.
pub(crate) const FLAG_DUMP: u16 = 0x300;

/// One message from the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Message<'a> {
    /// The message's type (`nlmsg_type`).
    pub kind: u16,
    /// `NLM_F_*`.
    pub flags: u16,
    /// The number of the request that this answers; 0 for notifications.
    pub sequence: u32,
    /// What follows the header, without padding.
    pub payload: &'a [u8],
}

/// The messages in a datagram. Ends after the first error.
#[derive(Clone, Debug)]
pub struct Messages<'a> {
    rest: &'a [u8],
}

impl<'a> Messages<'a> {
    /// The messages in `datagram`.
    pub const fn new(datagram: &'a [u8]) -> Self {
        Self { rest: datagram }
    }
}

impl<'a> Iterator for Messages<'a> {
    type Item = Result<Message<'a>, DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let bytes = std::mem::take(&mut self.rest);
        let Some((length, message)) = split(bytes) else {
            return Some(Err(DecodeError::Short {
                what: "a netlink message",
                need: HEADER,
                have: bytes.len(),
            }));
        };
        self.rest = bytes.get(align(length)..).unwrap_or_default();
        Some(Ok(message))
    }
}

/// The first message, and its length with header.
fn split(bytes: &[u8]) -> Option<(usize, Message<'_>)> {
    let &[l0, l1, l2, l3, k0, k1, f0, f1, s0, s1, s2, s3, _, _, _, _] =
        bytes.first_chunk::<HEADER>()?;
    let length = usize::try_from(u32::from_ne_bytes([l0, l1, l2, l3])).ok()?;
    let message = Message {
        kind: u16::from_ne_bytes([k0, k1]),
        flags: u16::from_ne_bytes([f0, f1]),
        sequence: u32::from_ne_bytes([s0, s1, s2, s3]),
        payload: bytes.get(HEADER..length)?,
    };
    Some((length, message))
}

/// A message's header.
pub(crate) fn header(length: u32, kind: u16, flags: u16, sequence: u32) -> [u8; HEADER] {
    let [l0, l1, l2, l3] = length.to_ne_bytes();
    let [k0, k1] = kind.to_ne_bytes();
    let [f0, f1] = flags.to_ne_bytes();
    let [s0, s1, s2, s3] = sequence.to_ne_bytes();
    [l0, l1, l2, l3, k0, k1, f0, f1, s0, s1, s2, s3, 0, 0, 0, 0]
}
