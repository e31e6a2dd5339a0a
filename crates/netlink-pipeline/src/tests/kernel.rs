//! A simulated kernel: it processes datagrams and queues replies, as `net/netlink/af_netlink.c` does.

use std::collections::{BTreeMap, VecDeque};

use netlink_packet_core::{NLM_F_ACK, NLM_F_DUMP, NLMSG_DONE, NLMSG_ERROR};

use crate::message::{HEADER, header};
use crate::{Conversation, Error, Messages, Next, Sequence};

/// The simulated kernel's reaction to a message, by type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Act {
    /// Success.
    Work,
    /// Failure with this error number.
    Fail(i32),
    /// Success with one reply that has the message's payload.
    Answer,
}

/// A simulated kernel with a receive queue of limited length.
#[derive(Debug)]
pub(super) struct Kernel {
    pub(super) acts: BTreeMap<u16, Act>,
    /// The number of replies that fit into the queue.
    pub(super) capacity: usize,
    queue: VecDeque<Vec<u8>>,
    /// Whether replies are dropped until the queue is empty.
    congested: bool,
    /// Whether the next read fails with `ENOBUFS`.
    overrun: bool,
    /// Types of the processed messages, in order.
    pub(super) worked: Vec<u16>,
    /// The largest number of replies in the queue.
    pub(super) most_queued: usize,
    /// Dumps, each a list of datagrams.
    pub(super) dumps: VecDeque<Vec<Vec<u8>>>,
}

impl Kernel {
    pub(super) fn new(capacity: usize) -> Self {
        Self {
            acts: BTreeMap::new(),
            capacity,
            queue: VecDeque::new(),
            congested: false,
            overrun: false,
            worked: Vec::new(),
            most_queued: 0,
            dumps: VecDeque::new(),
        }
    }

    /// Runs a conversation as the connections do.
    pub(super) fn converse(&mut self, conversation: &mut impl Conversation) -> Result<(), Error> {
        let mut sequence = Sequence::new();
        loop {
            match conversation.next(&mut sequence) {
                Next::Done => return Ok(()),
                Next::Send(datagram) => {
                    let datagram = datagram.to_vec();
                    self.take(&datagram);
                }
                Next::Receive if self.overrun => {
                    self.overrun = false;
                    while let Some(answer) = self.receive() {
                        conversation.received(&answer)?;
                    }
                    conversation.lost(Error::Overrun)?;
                }
                Next::Receive => match self.receive() {
                    Some(answer) => conversation.received(&answer)?,
                    None => conversation.lost(Error::TimedOut)?,
                },
            }
        }
    }

    fn receive(&mut self) -> Option<Vec<u8>> {
        let answer = self.queue.pop_front();
        if self.queue.is_empty() {
            self.congested = false;
        }
        answer
    }

    fn take(&mut self, datagram: &[u8]) {
        for message in Messages::new(datagram) {
            let message = message.unwrap();
            if message.flags & NLM_F_DUMP == NLM_F_DUMP {
                let parts = self.dumps.pop_front().expect("a dump too many");
                for mut part in parts {
                    number(&mut part, message.sequence);
                    self.answer(part);
                }
                continue;
            }
            self.worked.push(message.kind);
            let act = self.acts.get(&message.kind).copied().unwrap_or(Act::Work);
            if act == Act::Answer {
                let answer = reply(message.kind, 0, message.sequence, message.payload);
                self.answer(answer);
            }
            match act {
                Act::Fail(errno) => self.answer(error(errno, message.sequence)),
                _ if message.flags & NLM_F_ACK != 0 => self.answer(error(0, message.sequence)),
                _ => {}
            }
        }
    }

    fn answer(&mut self, answer: Vec<u8>) {
        if self.congested || self.queue.len() >= self.capacity {
            self.congested = true;
            self.overrun = true;
        } else {
            self.queue.push_back(answer);
            self.most_queued = self.most_queued.max(self.queue.len());
        }
    }
}

/// A message from the kernel.
pub(super) fn reply(kind: u16, flags: u16, sequence: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(HEADER + payload.len()).unwrap();
    let mut message = header(length, kind, flags, sequence).to_vec();
    message.extend_from_slice(payload);
    message.resize(message.len().next_multiple_of(4), 0);
    message
}

/// An acknowledgement, or an error without explanation.
pub(super) fn error(errno: i32, sequence: u32) -> Vec<u8> {
    let mut payload = (-errno).to_ne_bytes().to_vec();
    payload.extend_from_slice(&header(16, 0, 0, sequence));
    reply(NLMSG_ERROR, 0, sequence, &payload)
}

/// The end of a dump.
pub(super) fn done(flags: u16, number: i32) -> Vec<u8> {
    reply(NLMSG_DONE, flags, 0, &number.to_ne_bytes())
}

fn number(message: &mut [u8], sequence: u32) {
    message[8..12].copy_from_slice(&sequence.to_ne_bytes());
}
