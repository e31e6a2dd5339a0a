//! Sends and receives for both kinds of connection, without waiting.

use std::io;

use crate::{Conversation, Error, Messages, Next, Sequence, Socket};

/// Longest datagram, in bytes, that can be received. The kernel sends dumps in datagrams of at most 32 KiB.
const DATAGRAM: usize = 64 << 10;

/// Moves datagrams between a socket and a [`Conversation`].
#[derive(Debug)]
pub(crate) struct Exchange {
    pub(crate) sequence: Sequence,
    pub(crate) buffer: Vec<u8>,
    /// Whether the last conversation was abandoned before its end.
    unfinished: bool,
}

/// What [`Exchange::step`] did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StepResult {
    /// Sent a datagram of so many bytes.
    Sent(usize),
    MustReceive,
    Done,
}

impl Exchange {
    pub(crate) fn new() -> Self {
        Self {
            sequence: Sequence::new(),
            buffer: Vec::with_capacity(DATAGRAM),
            unfinished: false,
        }
    }

    /// Prepares for a conversation: discards a datagram that an abandoned one left in the socket, and returns its length;
    /// `None` if there is no more. To be repeated until then.
    ///
    /// The kernel continues an abandoned dump with each datagram that is read, so there may be many.
    pub(crate) fn begin(&mut self, socket: &Socket) -> Result<Option<usize>, Error> {
        if self.unfinished
            && let Some(length) = self.receive_queued(socket)?
        {
            return Ok(Some(length));
        }
        self.unfinished = true;
        Ok(None)
    }

    /// Does the conversation's next action, except receiving.
    pub(crate) fn step(
        &mut self,
        socket: &Socket,
        conversation: &mut impl Conversation,
    ) -> Result<StepResult, Error> {
        match conversation.next(&mut self.sequence) {
            Next::Send(datagram) => {
                socket.send(datagram).map_err(Error::socket("send"))?;
                Ok(StepResult::Sent(datagram.len()))
            }
            Next::Receive => Ok(StepResult::MustReceive),
            Next::Done => {
                self.unfinished = false;
                Ok(StepResult::Done)
            }
        }
    }

    /// Passes on the result of an attempt to receive into the buffer.
    pub(crate) fn deliver(
        &mut self,
        socket: &Socket,
        result: io::Result<usize>,
        conversation: &mut impl Conversation,
    ) -> Result<(), Error> {
        match result {
            Ok(length) if length > self.buffer.len() => Err(Error::Truncated { length }),
            Ok(_) => conversation.received(&self.buffer),
            Err(error) if is_overrun(&error) => {
                // The kernel replies before a send returns, so nothing more will come.
                while self.receive_queued(socket)?.is_some() {
                    conversation.received(&self.buffer)?;
                }
                conversation.lost(Error::Overrun)
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                conversation.lost(Error::TimedOut)
            }
            Err(source) => Err(Error::Socket {
                call: "recv",
                source,
            }),
        }
    }

    /// Returns the notifications that were received into the buffer.
    pub(crate) fn notifications(&self, result: io::Result<usize>) -> Result<Messages<'_>, Error> {
        match result {
            Ok(length) if length > self.buffer.len() => Err(Error::Truncated { length }),
            Ok(_) => Ok(Messages::new(&self.buffer)),
            Err(error) if is_overrun(&error) => Err(Error::Overrun),
            Err(source) => Err(Error::Socket {
                call: "recv",
                source,
            }),
        }
    }

    /// Receives a datagram into the buffer and returns its length; `None` if no datagram is in the socket.
    fn receive_queued(&mut self, socket: &Socket) -> Result<Option<usize>, Error> {
        loop {
            match socket.try_receive(&mut self.buffer) {
                Ok(length) if length > self.buffer.len() => {
                    return Err(Error::Truncated { length });
                }
                Ok(length) => return Ok(Some(length)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                Err(error) if is_overrun(&error) => {}
                Err(source) => {
                    return Err(Error::Socket {
                        call: "recv",
                        source,
                    });
                }
            }
        }
    }
}

fn is_overrun(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::ENOBUFS)
}
