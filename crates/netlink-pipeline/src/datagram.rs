//! Building a datagram of many requests.

use netlink_packet_core::{NLM_F_ACK, NLM_F_REQUEST};

use crate::attribute::align;
use crate::message::header;
use crate::options::Limits;
use crate::writer::Writer;

/// A request's type and flags, and what will come back if it succeeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// The message's type (`nlmsg_type`).
    pub kind: u16,
    /// `NLM_F_*` besides `NLM_F_REQUEST` and `NLM_F_ACK`, which are added where they belong.
    pub flags: u16,
    /// What the kernel will send if the request succeeds.
    pub answer: Answer,
}

impl Request {
    /// A request that is answered only by failing.
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

/// What the kernel sends if a request succeeds. It bounds how many requests may be on their way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Nothing.
    None,
    /// One message of ordinary size.
    One,
}

impl Answer {
    /// Bytes that the kernel books in the receive buffer for a refusal with a text: a buffer of 1 KiB and its
    /// bookkeeping. Measured without a text: 832.
    const REFUSAL: usize = 1536;
    /// Bytes that the kernel books for an ordinary message: a page and its bookkeeping.
    const MESSAGE: usize = 4608;

    /// The most that the answers to one such request can take of the receive buffer, in bytes.
    const fn charge(self) -> usize {
        match self {
            Self::None => Self::REFUSAL,
            Self::One => Self::REFUSAL + Self::MESSAGE,
        }
    }
}

/// Why a message cannot be sent at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unsendable(pub &'static str);

/// An attribute beyond 64 KiB, or a message beyond a datagram.
const TOO_LONG: Unsendable = Unsendable("the message is too long for netlink");

/// The most bytes of one message: beyond a default send buffer the kernel would refuse the datagram.
const MAX_MESSAGE: usize = 128 << 10;

/// A datagram being filled.
#[derive(Debug)]
pub struct Datagram {
    limits: Limits,
    /// The most of the receive buffer that the answers may take.
    max_charge: usize,
    buffer: Vec<u8>,
    count: u32,
    charge: usize,
}

impl Datagram {
    /// An empty datagram. Its answers will take at most `max_charge` bytes of the receive buffer, or one message's.
    pub fn new(limits: Limits, max_charge: usize) -> Self {
        Self {
            limits,
            max_charge,
            buffer: Vec::new(),
            count: 0,
            charge: 0,
        }
    }

    /// Appends a request whose payload is what `fill` appends. On failure the datagram is as it was.
    pub fn push(
        &mut self,
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
        match u32::try_from(length) {
            Ok(short) if !too_long && length <= MAX_MESSAGE => {
                self.patch(start, short.to_ne_bytes());
                if align(length) != length {
                    self.buffer.resize(start + align(length), 0);
                }
                self.count += 1;
                self.charge += request.answer.charge();
                Ok(())
            }
            _ => {
                self.buffer.truncate(start);
                Err(TOO_LONG)
            }
        }
    }

    /// Whether another message should go into the next datagram.
    pub fn is_full(&self) -> bool {
        let most = Answer::One.charge();
        self.count > 0
            && (self.buffer.len() >= self.limits.bytes
                || usize::try_from(self.count).is_ok_and(|count| count >= self.limits.messages)
                || self.charge + most > self.max_charge)
    }

    /// Whether there is no message.
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The number of messages.
    pub const fn count(&self) -> u32 {
        self.count
    }

    /// The most that the answers can take of the receive buffer, in bytes.
    pub(crate) const fn charge(&self) -> usize {
        self.charge
    }

    /// Numbers the messages from `first`, asks for an acknowledgement of the last, and gives the finished bytes.
    pub fn seal(&mut self, first: u32) -> &[u8] {
        let last = self.number(first);
        self.ask_for_ack(last + 6);
        &self.buffer
    }

    /// The same without asking for anything.
    pub(crate) fn seal_silently(&mut self, first: u32) -> &[u8] {
        self.number(first);
        &self.buffer
    }

    /// Numbers the messages. Returns where the last begins.
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

    /// Takes all messages out; the memory stays.
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
