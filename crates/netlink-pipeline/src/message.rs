//! Reads the netlink messages of a datagram (`struct nlmsghdr` in `include/uapi/linux/netlink.h`).

use netlink_packet_core::NetlinkBuffer;

use crate::attribute::align;
use crate::decode_error::DecodeError;

/// Bytes of a message's header.
pub(crate) const HEADER: usize = 16;

/// One message from the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Message<'a> {
    /// The message type (`nlmsg_type`).
    pub kind: u16,
    /// `NLM_F_*`.
    pub flags: u16,
    /// The sequence number of the request that this answers; 0 for notifications.
    pub sequence: u32,
    /// The payload after the header, without padding.
    pub payload: &'a [u8],
}

/// Iterates over the messages in a datagram. Stops after the first error.
#[derive(Clone, Debug)]
pub struct Messages<'a> {
    rest: &'a [u8],
}

impl<'a> Messages<'a> {
    /// Iterates over the messages in `datagram`.
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

/// Splits off the first message; returns its length with header, too.
fn split(bytes: &[u8]) -> Option<(usize, Message<'_>)> {
    let buffer = NetlinkBuffer::new_checked(bytes).ok()?;
    let message = Message {
        kind: buffer.message_type(),
        flags: buffer.flags(),
        sequence: buffer.sequence_number(),
        payload: buffer.payload(),
    };
    Some((HEADER + message.payload.len(), message))
}

/// Encodes a message header. `NetlinkHeader` is measurably slower (docs/decisions/0016).
pub(crate) fn header(length: u32, kind: u16, flags: u16, sequence: u32) -> [u8; HEADER] {
    let [l0, l1, l2, l3] = length.to_ne_bytes();
    let [k0, k1] = kind.to_ne_bytes();
    let [f0, f1] = flags.to_ne_bytes();
    let [s0, s1, s2, s3] = sequence.to_ne_bytes();
    [l0, l1, l2, l3, k0, k1, f0, f1, s0, s1, s2, s3, 0, 0, 0, 0]
}
