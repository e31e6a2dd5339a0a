//! The interface between the state machines and the sockets.

use crate::Error;

/// An exchange with the kernel as a state machine without I/O: it produces datagrams to send and consumes received
/// ones.
///
/// A connection calls [`next`](Self::next) and does what it returns, until that is [`Next::Done`].
pub trait Conversation {
    /// Returns the next action.
    fn next(&mut self, sequence: &mut Sequence) -> Next<'_>;

    /// Handles a datagram from the kernel. An error ends the conversation.
    fn received(&mut self, datagram: &[u8]) -> Result<(), Error>;

    /// Reports that replies were lost. Everything that was not lost has been passed to [`received`](Self::received).
    /// `why` is [`Error::Overrun`] or [`Error::TimedOut`]; returning it ends the conversation.
    fn lost(&mut self, why: Error) -> Result<(), Error>;
}

/// What a conversation needs next.
#[derive(Debug, PartialEq, Eq)]
pub enum Next<'a> {
    /// Send this datagram.
    Send(&'a [u8]),
    /// Receive a datagram.
    Receive,
    /// Nothing: the conversation has ended.
    Done,
}

/// The sequence numbers of one socket.
///
/// Two conversations never get the same number, so late replies to an abandoned conversation are recognised.
#[derive(Debug)]
pub struct Sequence(u32);

impl Sequence {
    /// Starts at 1: notifications carry 0.
    pub const fn new() -> Self {
        Self(1)
    }

    /// Reserves `count` successive numbers, none of them 0, and returns the first.
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
