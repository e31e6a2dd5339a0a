//! Many requests, each with its own outcome.

use std::collections::VecDeque;

use netlink_packet_core::{NLMSG_ERROR, NLMSG_NOOP};

use crate::decode_error::DecodeError;
use crate::{
    Conversation, Datagram, Error, Failure, Limits, Message, Messages, Nack, Next, Outcome,
    Sequence, Source, ack,
};

/// Sends everything a [`Source`] has, as many datagrams at a time as the receive buffer can answer.
///
/// `on_answer` is called with the index of a request and each message that answers it, other than refusals and
/// acknowledgements.
#[derive(Debug)]
pub struct Pipeline<S, F> {
    source: S,
    on_answer: F,
    /// Being filled, or sent and not yet cleared.
    datagram: Datagram,
    /// The index of its first message.
    datagram_index: usize,
    sent: bool,
    exhausted: bool,
    /// Datagrams sent and not yet answered, oldest first.
    unanswered: VecDeque<InFlight>,
    /// What the answers to those may take of the receive buffer, in bytes.
    in_flight: usize,
    /// The most they may take.
    window: usize,
    /// One for each message written so far; a success until shown otherwise.
    outcomes: Vec<Outcome>,
}

/// A datagram on its way.
#[derive(Debug)]
struct InFlight {
    sequence: u32,
    count: u32,
    index: usize,
    charge: usize,
}

impl<S: Source, F: FnMut(usize, Message<'_>) -> Result<(), DecodeError>> Pipeline<S, F> {
    /// A pipeline for a socket whose receive buffer holds `receive_buffer` bytes.
    pub fn new(source: S, limits: Limits, receive_buffer: usize, on_answer: F) -> Self {
        // A quarter stays free for the kernel's rounding.
        let window = receive_buffer / 4 * 3;
        Self {
            source,
            on_answer,
            datagram: Datagram::new(limits, window),
            datagram_index: 0,
            sent: false,
            exhausted: false,
            unanswered: VecDeque::new(),
            in_flight: 0,
            window,
            outcomes: Vec::new(),
        }
    }

    /// The outcomes, in the order of the messages. Complete once the conversation has ended.
    pub fn into_outcomes(self) -> Vec<Outcome> {
        self.outcomes
    }

    /// Fills the datagram from the source. What cannot be sent has its outcome at once and closes a datagram that is
    /// not empty, so that the outcomes of one datagram stand side by side.
    fn fill(&mut self) {
        while !self.exhausted && !self.datagram.is_full() {
            if self.datagram.is_empty() {
                self.datagram_index = self.outcomes.len();
            }
            match self.source.write_next(&mut self.datagram) {
                Some(Ok(())) => self.outcomes.push(Ok(())),
                Some(Err(why)) => {
                    self.outcomes.push(Err(Box::new(Failure::Unsendable(why))));
                    if !self.datagram.is_empty() {
                        return;
                    }
                }
                None => self.exhausted = true,
            }
        }
    }

    fn has_room(&self) -> bool {
        self.unanswered.is_empty() || self.in_flight + self.datagram.charge() <= self.window
    }

    /// Books the datagram as sent and gives its bytes.
    fn mark_sent(&mut self, sequence: &mut Sequence) -> &[u8] {
        let flight = InFlight {
            sequence: sequence.reserve(self.datagram.count()),
            count: self.datagram.count(),
            index: self.datagram_index,
            charge: self.datagram.charge(),
        };
        let first = flight.sequence;
        self.in_flight += flight.charge;
        self.unanswered.push_back(flight);
        self.sent = true;
        self.datagram.seal(first)
    }

    /// Which flight a sequence number belongs to, and which of its messages.
    fn find(&self, sequence: u32) -> Option<(usize, u32)> {
        self.unanswered.iter().enumerate().find_map(|(at, flight)| {
            let message = sequence.wrapping_sub(flight.sequence);
            (message < flight.count).then_some((at, message))
        })
    }

    fn handle(&mut self, message: Message<'_>) -> Result<(), DecodeError> {
        // An answer to a conversation that was given up.
        let Some((at, number)) = self.find(message.sequence) else {
            return Ok(());
        };
        let Some(flight) = self.unanswered.get(at) else {
            return Ok(());
        };
        let index = flight.index + number as usize;
        match message.kind {
            NLMSG_NOOP => {}
            NLMSG_ERROR => {
                let is_last = number + 1 == flight.count;
                if let Some(nack) = ack::read_error(&message)? {
                    self.refuse(index, nack);
                }
                if is_last {
                    self.settle(at);
                }
            }
            _ => (self.on_answer)(index, message)?,
        }
        Ok(())
    }

    fn refuse(&mut self, index: usize, nack: Nack) {
        if let Some(outcome) = self.outcomes.get_mut(index) {
            *outcome = Err(Box::new(Failure::Refused(nack)));
        }
    }

    /// The last message of a datagram is answered, and with it this datagram and all before it.
    fn settle(&mut self, at: usize) {
        for flight in self.unanswered.drain(..=at) {
            self.in_flight -= flight.charge;
        }
    }

    /// Nothing more will come for what is on its way.
    fn mark_unknown(&mut self) {
        for flight in self.unanswered.drain(..) {
            let messages = flight.index..flight.index + flight.count as usize;
            for outcome in self.outcomes.get_mut(messages).into_iter().flatten() {
                if outcome.is_ok() {
                    *outcome = Err(Box::new(Failure::Unknown));
                }
            }
        }
        self.in_flight = 0;
    }
}

impl<S: Source, F: FnMut(usize, Message<'_>) -> Result<(), DecodeError>> Conversation
    for Pipeline<S, F>
{
    fn next(&mut self, sequence: &mut Sequence) -> Next<'_> {
        if self.sent {
            self.datagram.clear();
            self.sent = false;
        }
        self.fill();
        if !self.datagram.is_empty() && self.has_room() {
            return Next::Send(self.mark_sent(sequence));
        }
        if self.unanswered.is_empty() {
            Next::Done
        } else {
            Next::Receive
        }
    }

    fn received(&mut self, datagram: &[u8]) -> Result<(), Error> {
        for message in Messages::new(datagram) {
            self.handle(message?)?;
        }
        Ok(())
    }

    /// After an overrun, what is on its way is unknown and the rest is still sent, fewer at a time. A kernel that does
    /// not answer in time is not asked for more.
    fn lost(&mut self, why: Error) -> Result<(), Error> {
        match why {
            Error::Overrun => {
                self.mark_unknown();
                self.window /= 2;
                Ok(())
            }
            why => Err(why),
        }
    }
}
