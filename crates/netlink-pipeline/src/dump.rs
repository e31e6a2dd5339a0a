//! Dumps a whole table, and repeats the dump until it was not interrupted.

use netlink_packet_core::{NLM_F_DUMP, NLM_F_DUMP_INTR, NLMSG_DONE, NLMSG_ERROR, NLMSG_NOOP};

use crate::decode_error::DecodeError;
use crate::writer::Writer;
use crate::{
    Conversation, Datagram, Error, Limits, Message, Messages, Next, Request, Sequence, Unsendable,
    ack,
};

/// Dumps a table and collects what `decode` returns for each message.
///
/// The kernel marks a dump during which the table changed (`NLM_F_DUMP_INTR`). Such a dump is discarded and repeated,
/// and so is one of which a part was lost.
#[derive(Debug)]
pub struct Dump<T, F> {
    decode: F,
    datagram: Datagram,
    items: Vec<T>,
    state: DumpState,
    sequence: u32,
    /// Datagrams with entries in this attempt so far.
    parts: u32,
    interrupted: bool,
    attempts_left: u32,
    attempts: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DumpState {
    Request,
    Receive,
    Done,
}

impl<T, F: FnMut(Message<'_>) -> Result<Option<T>, DecodeError>> Dump<T, F> {
    /// Creates a dump with at most `attempts` attempts. Dump flags are added to `request`; `fill` writes its payload.
    ///
    /// `decode` returns `None` to skip a message.
    pub fn new(
        request: Request,
        fill: impl FnOnce(&mut Writer<'_>),
        attempts: u32,
        decode: F,
    ) -> Result<Self, Unsendable> {
        let mut datagram = Datagram::new(Limits::default(), 0);
        let request = Request {
            flags: request.flags | NLM_F_DUMP,
            ..request
        };
        datagram.push(request, fill)?;
        Ok(Self {
            decode,
            datagram,
            items: Vec::new(),
            state: DumpState::Request,
            sequence: 0,
            parts: 0,
            interrupted: false,
            attempts_left: attempts.max(1),
            attempts: attempts.max(1),
        })
    }

    /// Whether the entries came in more than one datagram. The kernel fills one datagram at once; between two of them
    /// the table may have changed.
    pub const fn is_multipart(&self) -> bool {
        self.parts > 1
    }

    /// Returns the items. They are complete when the conversation has ended.
    pub fn into_items(self) -> Vec<T> {
        self.items
    }

    fn handle(&mut self, message: Message<'_>) -> Result<(), Error> {
        if message.sequence != self.sequence || self.state != DumpState::Receive {
            return Ok(());
        }
        self.interrupted |= message.flags & NLM_F_DUMP_INTR != 0;
        match message.kind {
            NLMSG_NOOP => {}
            NLMSG_ERROR => {
                if let Some(nack) = ack::read_error(&message)? {
                    return Err(Error::Refused(nack));
                }
            }
            NLMSG_DONE => match ack::read_done(&message)? {
                Some(nack) => return Err(Error::Refused(nack)),
                None if self.interrupted => {
                    let attempts = self.attempts;
                    self.restart(Error::Interrupted { attempts })?;
                }
                None => self.state = DumpState::Done,
            },
            _ => self.items.extend((self.decode)(message)?),
        }
        Ok(())
    }

    /// Starts the next attempt, or fails with `why` if none is left.
    fn restart(&mut self, why: Error) -> Result<(), Error> {
        if self.attempts_left == 0 {
            return Err(why);
        }
        self.items.clear();
        self.parts = 0;
        self.interrupted = false;
        self.state = DumpState::Request;
        Ok(())
    }
}

impl<T, F: FnMut(Message<'_>) -> Result<Option<T>, DecodeError>> Conversation for Dump<T, F> {
    fn next(&mut self, sequence: &mut Sequence) -> Next<'_> {
        match self.state {
            DumpState::Request => {
                self.attempts_left = self.attempts_left.saturating_sub(1);
                self.state = DumpState::Receive;
                self.sequence = sequence.reserve(1);
                Next::Send(self.datagram.seal(self.sequence))
            }
            DumpState::Receive => Next::Receive,
            DumpState::Done => Next::Done,
        }
    }

    fn received(&mut self, datagram: &[u8]) -> Result<(), Error> {
        let before = self.items.len();
        for message in Messages::new(datagram) {
            self.handle(message?)?;
        }
        self.parts += u32::from(self.items.len() > before);
        Ok(())
    }

    fn lost(&mut self, why: Error) -> Result<(), Error> {
        match (&why, self.state) {
            (_, DumpState::Done) => Ok(()),
            (Error::Overrun, _) => self.restart(why),
            _ => Err(why),
        }
    }
}
