//! Sends and receives for both connections, without waiting.

use std::io;

use crate::{Conversation, Error, Messages, Next, Sequence, Socket};

/// Bytes of the longest datagram that can be received. The kernel makes dumps of at most 32 KiB.
const DATAGRAM: usize = 64 << 10;

/// Moves datagrams between a socket and a [`Conversation`].
#[derive(Debug)]
pub(crate) struct Exchange {
    pub(crate) sequence: Sequence,
    pub(crate) buffer: Vec<u8>,
    /// A conversation was begun and did not come to its end.
    unfinished: bool,
}

/// What a step came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// A datagram of so many bytes.
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

    /// Before a conversation: what one that was given up left in the socket is read away, which also ends its dump.
    pub(crate) fn begin(&mut self, socket: &Socket) -> Result<(), Error> {
        if self.unfinished {
            self.drain(socket, |_| Ok(()))?;
        }
        self.unfinished = true;
        Ok(())
    }

    /// Does what the conversation wants, unless that is to receive.
    pub(crate) fn step(
        &mut self,
        socket: &Socket,
        conversation: &mut impl Conversation,
    ) -> Result<Step, Error> {
        match conversation.next(&mut self.sequence) {
            Next::Send(datagram) => {
                socket.send(datagram).map_err(Error::socket("send"))?;
                Ok(Step::Sent(datagram.len()))
            }
            Next::Receive => Ok(Step::MustReceive),
            Next::Done => {
                self.unfinished = false;
                Ok(Step::Done)
            }
        }
    }

    /// Hands over what came of an attempt to receive into the buffer.
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
                self.drain(socket, |datagram| conversation.received(datagram))?;
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

    /// What came of an attempt to receive notifications into the buffer.
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

    /// Reads everything that is there. The kernel answers before a send returns, so nothing more will come.
    fn drain(
        &mut self,
        socket: &Socket,
        mut handle: impl FnMut(&[u8]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        loop {
            match socket.try_receive(&mut self.buffer) {
                Ok(length) if length > self.buffer.len() => {
                    return Err(Error::Truncated { length });
                }
                Ok(_) => handle(&self.buffer)?,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
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
