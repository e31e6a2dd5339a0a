//! A whole table, read until one reading was undisturbed.

use netlink_packet_core::{NLM_F_DUMP, NLM_F_DUMP_INTR, NLMSG_DONE, NLMSG_ERROR, NLMSG_NOOP};

use crate::decode_error::DecodeError;
use crate::writer::Writer;
use crate::{
    Conversation, Datagram, Error, Limits, Message, Messages, Next, Request, Sequence, Unsendable,
    ack,
};

/// Reads a table, message by message, into a list of what `decode` makes of them.
///
/// The kernel marks a reading during which its table changed (`NLM_F_DUMP_INTR`); such a reading, or one of which a
/// part was lost, is thrown away and the table is read again.
#[derive(Debug)]
pub struct Dump<T, F> {
    decode: F,
    datagram: Datagram,
    items: Vec<T>,
    state: State,
    sequence: u32,
    /// Datagrams with entries in this reading so far.
    parts: u32,
    interrupted: bool,
    attempts_left: u32,
    attempts: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Request,
    Receive,
    Done,
}

impl<T, F: FnMut(Message<'_>) -> Result<Option<T>, DecodeError>> Dump<T, F> {
    /// A dump that is tried at most `attempts` times. `request` needs no dump flags; `fill` appends its payload.
    ///
    /// `decode` returns `None` for messages that are of no interest.
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
            state: State::Request,
            sequence: 0,
            parts: 0,
            interrupted: false,
            attempts_left: attempts.max(1),
            attempts: attempts.max(1),
        })
    }

    /// Whether the entries came in more than one datagram: the kernel fills one in one go, and between two of them the
    /// table may have changed.
    pub const fn came_in_parts(&self) -> bool {
        self.parts > 1
    }

    /// What was read. Complete once the conversation has ended.
    pub fn into_items(self) -> Vec<T> {
        self.items
    }

    fn handle(&mut self, message: Message<'_>) -> Result<(), Error> {
        if message.sequence != self.sequence || self.state != State::Receive {
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
                None => self.state = State::Done,
            },
            _ => self.items.extend((self.decode)(message)?),
        }
        Ok(())
    }

    /// Starts over, or fails with `why` if that was tried often enough.
    fn restart(&mut self, why: Error) -> Result<(), Error> {
        if self.attempts_left == 0 {
            return Err(why);
        }
        self.items.clear();
        self.parts = 0;
        self.interrupted = false;
        self.state = State::Request;
        Ok(())
    }
}

impl<T, F: FnMut(Message<'_>) -> Result<Option<T>, DecodeError>> Conversation for Dump<T, F> {
    fn next(&mut self, sequence: &mut Sequence) -> Next<'_> {
        match self.state {
            State::Request => {
                self.attempts_left = self.attempts_left.saturating_sub(1);
                self.state = State::Receive;
                self.sequence = sequence.reserve(1);
                Next::Send(self.datagram.seal(self.sequence))
            }
            State::Receive => Next::Receive,
            State::Done => Next::Done,
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
            (_, State::Done) => Ok(()),
            (Error::Overrun, _) => self.restart(why),
            _ => Err(why),
        }
    }
}
