//! The contract between the state machines and the sockets.

use crate::Error;

/// An exchange with the kernel, free of I/O: it is handed bytes and hands out bytes.
///
/// A connection asks [`next`](Self::next) what to do and does it, until the answer is [`Next::Done`].
pub trait Conversation {
    /// What to do now.
    fn next(&mut self, sequence: &mut Sequence) -> Next<'_>;

    /// Handles a datagram from the kernel. An error ends the conversation.
    fn received(&mut self, datagram: &[u8]) -> Result<(), Error>;

    /// Answers are lost, and everything that was not lost has been handed to [`received`](Self::received).
    /// `why` is [`Error::Overrun`] or [`Error::TimedOut`]; giving it back ends the conversation.
    fn lost(&mut self, why: Error) -> Result<(), Error>;
}

/// What a conversation wants done.
#[derive(Debug, PartialEq, Eq)]
pub enum Next<'a> {
    /// This datagram is to be sent.
    Send(&'a [u8]),
    /// A datagram is to be received.
    Receive,
    /// Nothing: the conversation has ended.
    Done,
}

/// The sequence numbers of one socket.
///
/// Numbers are never given twice in a row, so answers to a conversation that was given up are told apart.
#[derive(Debug)]
pub struct Sequence(u32);

impl Sequence {
    /// Starts at 1: notifications have 0.
    pub const fn new() -> Self {
        Self(1)
    }

    /// The first of `count` successive numbers, none of them 0.
    pub const fn reserve(&mut self, count: u32) -> u32 {
        if self.0.checked_add(count).is_none() {
            self.0 = 1;
        }
        let first = self.0;
        self.0 = first.wrapping_add(count);
        first
    }
}

impl Default for Sequence {
    fn default() -> Self {
        Self::new()
    }
}
