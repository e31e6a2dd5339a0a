//! Sends many requests and returns a result for each.

use std::collections::VecDeque;

use netlink_packet_core::{NLMSG_ERROR, NLMSG_NOOP};

use crate::decode_error::DecodeError;
use crate::{
    Conversation, Datagram, Error, Limits, Message, Messages, Nack, Next, RequestError,
    RequestResult, Sequence, Source, ack,
};

/// Sends every message of a [`Source`], with as many datagrams in flight as the receive buffer can hold replies for.
///
/// `on_answer` gets the index of a request and each message that answers it, except errors and acknowledgements.
#[derive(Debug)]
pub struct Pipeline<S, F> {
    source: S,
    on_answer: F,
    /// The datagram being filled, or sent and not yet cleared.
    datagram: Datagram,
    /// The index of its first message.
    datagram_index: usize,
    sent: bool,
    exhausted: bool,
    /// Datagrams that were sent and not yet answered, oldest first.
    unanswered: VecDeque<InFlight>,
    /// Upper bound, in bytes, of what their replies take of the receive buffer.
    in_flight: usize,
    /// The limit for `in_flight`.
    window: usize,
    /// One result for each message so far; a success until an error arrives.
    results: Vec<RequestResult>,
}

/// A datagram in flight.
#[derive(Debug)]
struct InFlight {
    sequence: u32,
    count: u32,
    index: usize,
    charge: usize,
}

impl<S: Source, F: FnMut(usize, Message<'_>) -> Result<(), DecodeError>> Pipeline<S, F> {
    /// A pipeline for a socket with a receive buffer of `receive_buffer` bytes.
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
            results: Vec::new(),
        }
    }

    /// Returns the results in the order of the messages. They are complete when the conversation has ended.
    pub fn into_results(self) -> Vec<RequestResult> {
        self.results
    }

    /// Fills the datagram from the source. A message that cannot be sent gets its result at once, and the next one
    /// another datagram, so that the results of one datagram are contiguous.
    fn fill(&mut self) {
        while !self.exhausted && !self.datagram.is_full() && !self.is_followed() {
            if self.datagram.is_empty() {
                self.datagram_index = self.results.len();
            }
            match self.source.write_next(&mut self.datagram) {
                Some(Ok(())) => self.results.push(Ok(())),
                Some(Err(why)) => {
                    let error = RequestError::Unsendable(why);
                    self.results.push(Err(Box::new(error)));
                }
                None => self.exhausted = true,
            }
        }
    }

    /// Whether a result that is not of the datagram follows its results.
    fn is_followed(&self) -> bool {
        let end = self.datagram_index + self.datagram.count() as usize;
        !self.datagram.is_empty() && end < self.results.len()
    }

    fn has_room(&self) -> bool {
        self.unanswered.is_empty() || self.in_flight + self.datagram.charge() <= self.window
    }

    /// Marks the datagram as sent and returns its bytes.
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

    /// Finds the datagram in flight with a sequence number, and the message in it.
    fn find(&self, sequence: u32) -> Option<(usize, u32)> {
        self.unanswered.iter().enumerate().find_map(|(at, flight)| {
            let message = sequence.wrapping_sub(flight.sequence);
            (message < flight.count).then_some((at, message))
        })
    }

    fn handle(&mut self, message: Message<'_>) -> Result<(), DecodeError> {
        // A reply to an abandoned conversation.
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
        if let Some(outcome) = self.results.get_mut(index) {
            *outcome = Err(Box::new(RequestError::Refused(nack)));
        }
    }

    /// Completes the datagram at `at` and all before it, since its last message was answered.
    fn settle(&mut self, at: usize) {
        for flight in self.unanswered.drain(..=at) {
            self.in_flight -= flight.charge;
        }
    }

    /// Marks everything in flight as unknown: no more replies will come.
    fn mark_unknown(&mut self) {
        for flight in self.unanswered.drain(..) {
            let messages = flight.index..flight.index + flight.count as usize;
            for outcome in self.results.get_mut(messages).into_iter().flatten() {
                if outcome.is_ok() {
                    *outcome = Err(Box::new(RequestError::Unknown));
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

    /// After an overrun the requests in flight are unknown, and the rest is sent with a smaller window. After a timeout
    /// nothing more is sent.
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
