//! Builds a datagram of many requests.

use netlink_packet_core::{NLM_F_ACK, NLM_F_REQUEST};

use crate::attribute::align;
use crate::message::header;
use crate::options::Limits;
use crate::writer::Writer;

/// The type and flags of a request, and the reply that the kernel sends on success.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// The message type (`nlmsg_type`).
    pub kind: u16,
    /// `NLM_F_*` flags. `NLM_F_REQUEST` and `NLM_F_ACK` are added where needed.
    pub flags: u16,
    /// What the kernel sends if the request succeeds.
    pub answer: Answer,
}

impl Request {
    /// A request that the kernel answers only on failure.
    pub const fn new(kind: u16, flags: u16) -> Self {
        Self {
            kind,
            flags,
            answer: Answer::None,
        }
    }

    /// The same request, answered by one message.
    #[must_use]
    pub const fn with_answer(self) -> Self {
        Self {
            answer: Answer::One,
            ..self
        }
    }
}

/// What the kernel sends if a request succeeds. It limits how many requests may be in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Nothing.
    None,
    /// One message of at most a page.
    One,
}

impl Answer {
    /// Bytes that the kernel charges to the receive buffer for an error with a text: a buffer of 1 KiB plus overhead.
    /// Measured without a text: 832.
    const REFUSAL: usize = 1536;
    /// Bytes that the kernel charges for an ordinary message: a page plus overhead.
    const MESSAGE: usize = 4608;

    /// Upper bound, in bytes, of what the replies to one such request take of the receive buffer.
    const fn charge(self) -> usize {
        match self {
            Self::None => Self::REFUSAL,
            Self::One => Self::REFUSAL + Self::MESSAGE,
        }
    }
}

/// Why a message cannot be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unsendable(pub &'static str);

/// For an attribute beyond 64 KiB, or a message beyond a datagram.
const TOO_LONG: Unsendable = Unsendable("the message is too long for netlink");

/// For requests that must be in one datagram and do not fit.
const TOO_MANY: Unsendable = Unsendable("the requests are too long for one datagram");

/// Longest message in bytes. The kernel refuses a datagram that is longer than a default send buffer.
const MAX_MESSAGE: usize = 128 << 10;

/// A datagram under construction.
#[derive(Debug)]
pub struct Datagram {
    limits: Limits,
    /// The limit for what the replies take of the receive buffer.
    max_charge: usize,
    buffer: Vec<u8>,
    count: u32,
    charge: usize,
}

impl Datagram {
    /// An empty datagram. Its replies take at most `max_charge` bytes of the receive buffer, or those of one message.
    pub fn new(limits: Limits, max_charge: usize) -> Self {
        Self {
            limits,
            max_charge,
            buffer: Vec::new(),
            count: 0,
            charge: 0,
        }
    }

    /// Appends a request. `fill` writes its payload. On failure the datagram is unchanged.
    pub fn push(
        &mut self,
        request: Request,
        fill: impl FnOnce(&mut Writer<'_>),
    ) -> Result<(), Unsendable> {
        self.push_within(usize::MAX, request, fill)
    }

    /// Does the same, but fails if the datagram would have more than `max_bytes`.
    pub(crate) fn push_within(
        &mut self,
        max_bytes: usize,
        request: Request,
        fill: impl FnOnce(&mut Writer<'_>),
    ) -> Result<(), Unsendable> {
        let start = self.buffer.len();
        let flags = request.flags | NLM_F_REQUEST;
        self.buffer
            .extend_from_slice(&header(0, request.kind, flags, 0));
        let mut writer = Writer::new(&mut self.buffer);
        fill(&mut writer);
        let too_long = writer.is_too_long();
        let length = self.buffer.len() - start;
        let why = match u32::try_from(length) {
            Ok(_) if start + align(length) > max_bytes => TOO_MANY,
            Ok(short) if !too_long && length <= MAX_MESSAGE => {
                self.patch(start, short.to_ne_bytes());
                self.buffer.resize(start + align(length), 0);
                self.count += 1;
                self.charge += request.answer.charge();
                return Ok(());
            }
            _ => TOO_LONG,
        };
        self.buffer.truncate(start);
        Err(why)
    }

    /// Whether the next message belongs into another datagram.
    pub fn is_full(&self) -> bool {
        let most = Answer::One.charge();
        self.count > 0
            && (self.buffer.len() >= self.limits.bytes
                || usize::try_from(self.count).is_ok_and(|count| count >= self.limits.messages)
                || self.charge + most > self.max_charge)
    }

    /// Whether the datagram has no messages.
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The number of messages.
    pub const fn count(&self) -> u32 {
        self.count
    }

    /// Upper bound, in bytes, of what the replies take of the receive buffer.
    pub(crate) const fn charge(&self) -> usize {
        self.charge
    }

    /// Numbers the messages from `first`, requests an acknowledgement of the last one, and returns the datagram.
    pub fn seal(&mut self, first: u32) -> &[u8] {
        let last = self.number(first);
        self.ask_for_ack(last + 6);
        &self.buffer
    }

    /// Does the same without requesting an acknowledgement.
    pub(crate) fn seal_silently(&mut self, first: u32) -> &[u8] {
        self.number(first);
        &self.buffer
    }

    /// Numbers the messages. Returns the offset of the last one.
    fn number(&mut self, first: u32) -> usize {
        let mut sequence = first;
        let (mut start, mut last) = (0, 0);
        while let Some(length) = self.length_at(start) {
            self.patch(start + 8, sequence.to_ne_bytes());
            sequence = sequence.wrapping_add(1);
            last = start;
            start += align(length);
        }
        last
    }

    /// Removes all messages and keeps the memory.
    pub fn clear(&mut self) {
        self.buffer.clear();
        self.count = 0;
        self.charge = 0;
    }

    fn length_at(&self, start: usize) -> Option<usize> {
        let bytes = self.buffer.get(start..)?.first_chunk()?;
        usize::try_from(u32::from_ne_bytes(*bytes)).ok()
    }

    fn ask_for_ack(&mut self, flags: usize) {
        let bytes = self.buffer.get(flags..).and_then(<[u8]>::first_chunk);
        if let Some(bytes) = bytes {
            let with_ack = u16::from_ne_bytes(*bytes) | NLM_F_ACK;
            self.patch(flags, with_ack.to_ne_bytes());
        }
    }

    fn patch<const N: usize>(&mut self, start: usize, bytes: [u8; N]) {
        let behind = self.buffer.get_mut(start..).unwrap_or_default();
        if let Some(place) = behind.first_chunk_mut() {
            *place = bytes;
        }
    }
}
