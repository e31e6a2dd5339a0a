//! Sends prepared netlink messages in the shortest possible loop (the bare loop).
//!
//! Its time is what the kernel itself needs. Time of the agent above it is the agent's own.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use netlink_sys::protocols::NETLINK_GENERIC;
use netlink_sys::{Socket, SocketAddr};

/// Room for the largest datagram the kernel sends in a dump (`NLMSG_GOODSIZE` is at most 32 KiB here).
const RECEIVE_BUFFER: usize = 64 * 1024;
/// `NLMSG_ERROR` of `linux/netlink.h`: an acknowledgement or a failure.
const ERROR: u16 = 2;
/// `NLMSG_DONE` of `linux/netlink.h`: the end of a dump.
const DONE: u16 = 3;
/// `struct nlmsghdr` of `linux/netlink.h`.
const HEADER: usize = 16;

/// One or more netlink messages in one datagram, encoded before the clock starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EncodedDatagram {
    pub(crate) bytes: Vec<u8>,
    /// Sequence number of the last message; only it requests an acknowledgement.
    pub(crate) last: u32,
}

impl EncodedDatagram {
    pub(crate) fn new(bytes: Vec<u8>) -> Self {
        let last = Messages(&bytes)
            .last()
            .map_or(0, |message| message.sequence);
        Self { bytes, last }
    }
}

/// A generic netlink socket with one buffer.
pub(crate) struct BareSocket {
    socket: Socket,
    buffer: Vec<u8>,
}

/// The size of a dump.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct DumpCounts {
    /// Messages other than the end of a dump.
    pub(crate) entries: u64,
    pub(crate) bytes: u64,
}

impl BareSocket {
    /// Opens the socket in the current network namespace.
    pub(crate) fn open() -> Result<Self> {
        let mut socket = Socket::new(NETLINK_GENERIC)?;
        socket.bind_auto()?;
        socket.connect(&SocketAddr::new(0, 0))?;
        Ok(Self {
            socket,
            buffer: Vec::with_capacity(RECEIVE_BUFFER),
        })
    }

    /// Sends every datagram and waits for its acknowledgement; fails at the first error that the kernel returns.
    pub(crate) fn send(&mut self, datagrams: &[EncodedDatagram]) -> Result<Duration> {
        let begin = Instant::now();
        for datagram in datagrams {
            self.socket.send(&datagram.bytes, 0)?;
            while !self.acknowledged(datagram.last)? {}
        }
        Ok(begin.elapsed())
    }

    /// Sends every dump request and receives its answer to the end.
    pub(crate) fn dump(&mut self, requests: &[EncodedDatagram]) -> Result<(Duration, DumpCounts)> {
        let begin = Instant::now();
        let mut dumped = DumpCounts::default();
        for request in requests {
            self.socket.send(&request.bytes, 0)?;
            while !self.drained(&mut dumped)? {}
        }
        Ok((begin.elapsed(), dumped))
    }

    /// Receives one datagram and returns whether it acknowledges message `last`.
    fn acknowledged(&mut self, last: u32) -> Result<bool> {
        self.receive()?;
        let mut done = false;
        for message in Messages(&self.buffer) {
            if message.kind == ERROR && message.code != 0 {
                bail!(
                    "the kernel refused message {}: errno {}",
                    message.sequence,
                    -message.code
                );
            }
            done |= message.kind == ERROR && message.sequence == last;
        }
        Ok(done)
    }

    /// Receives one datagram and returns whether the dump ends in it.
    fn drained(&mut self, dumped: &mut DumpCounts) -> Result<bool> {
        self.receive()?;
        dumped.bytes += u64::try_from(self.buffer.len())?;
        let mut done = false;
        for message in Messages(&self.buffer) {
            match message.kind {
                DONE => done = true,
                ERROR => bail!("the kernel refused the dump: errno {}", -message.code),
                _ => dumped.entries += 1,
            }
        }
        Ok(done)
    }

    fn receive(&mut self) -> Result<()> {
        self.buffer.clear();
        self.socket
            .recv(&mut self.buffer, 0)
            .context("netlink receive")?;
        Ok(())
    }
}

/// The fields of a message that the loop reads.
struct MessageHeader {
    kind: u16,
    sequence: u32,
    /// The four bytes behind the header: in `NLMSG_ERROR` a negated errno.
    code: i32,
}

/// Walks the messages of one datagram.
struct Messages<'a>(&'a [u8]);

impl Iterator for Messages<'_> {
    type Item = MessageHeader;

    fn next(&mut self) -> Option<MessageHeader> {
        let bytes = self.0;
        let length = usize::try_from(u32::from_ne_bytes(bytes_at(bytes, 0)?)).ok()?;
        if length < HEADER {
            return None;
        }
        let [kind_0, kind_1, _, _] = bytes_at(bytes, 4)?;
        self.0 = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some(MessageHeader {
            kind: u16::from_ne_bytes([kind_0, kind_1]),
            sequence: u32::from_ne_bytes(bytes_at(bytes, 8)?),
            code: bytes_at(bytes, HEADER).map_or(0, i32::from_ne_bytes),
        })
    }
}

fn bytes_at(bytes: &[u8], at: usize) -> Option<[u8; 4]> {
    bytes.get(at..at + 4)?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(kind: u16, sequence: u32, code: i32) -> Vec<u8> {
        let mut bytes = Vec::new();
        bytes.extend(20_u32.to_ne_bytes());
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(0_u16.to_ne_bytes());
        bytes.extend(sequence.to_ne_bytes());
        bytes.extend(0_u32.to_ne_bytes());
        bytes.extend(code.to_ne_bytes());
        bytes
    }

    #[test]
    fn every_message_of_a_datagram_is_seen() {
        let bytes = [message(ERROR, 7, 0), message(ERROR, 8, -17)].concat();
        let seen: Vec<_> = Messages(&bytes)
            .map(|message| (message.kind, message.sequence, message.code))
            .collect();
        assert_eq!(seen, [(ERROR, 7, 0), (ERROR, 8, -17)]);
    }

    #[test]
    fn a_cut_message_ends_the_walk() {
        let bytes = message(DONE, 1, 0);
        assert_eq!(Messages(&bytes[..10]).count(), 0);
        assert_eq!(
            Messages(&[0; 40]).count(),
            0,
            "a length of 0 must not loop for ever"
        );
    }
}
