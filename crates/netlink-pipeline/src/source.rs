//! The messages that a pipeline sends.

use std::ops::Range;

use crate::{Datagram, Limits, Request, Unsendable};

/// A list of requests that are encoded when they are sent.
///
/// The result of the n-th message is the n-th result. A message that cannot be sent gets an error as its result.
pub trait Source {
    /// Appends the next request with one [`Datagram::push`] and returns its result; `None` at the end of the list.
    fn write_next(&mut self, datagram: &mut Datagram) -> Option<Result<(), Unsendable>>;
}

/// Encodes everything in `source` into datagrams, numbered from `first`, for sending without a pipeline.
///
/// Messages that cannot be sent are left out.
///
/// ```
/// use netlink_pipeline::{Batch, Limits, Request, datagrams};
///
/// let mut batch = Batch::new();
/// for _ in 0..300 {
///     batch.push(Request::new(1, 0), &[0; 4]);
/// }
/// assert_eq!(datagrams(&mut batch, Limits::default(), 1).len(), 3);
/// ```
pub fn datagrams(source: &mut impl Source, limits: Limits, first: u32) -> Vec<Vec<u8>> {
    let mut finished = Vec::new();
    let mut datagram = Datagram::new(limits, usize::MAX);
    let mut sequence = first;
    loop {
        let more = loop {
            if datagram.is_full() {
                break true;
            }
            if source.write_next(&mut datagram).is_none() {
                break false;
            }
        };
        if !datagram.is_empty() {
            finished.push(datagram.seal(sequence).to_vec());
            sequence = sequence.wrapping_add(datagram.count());
            datagram.clear();
        }
        if !more {
            return finished;
        }
    }
}

/// Requests that are already encoded, for example by the `netlink-packet-*` crates.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    payloads: Vec<u8>,
    requests: Vec<(Request, Range<usize>)>,
    next: usize,
}

impl Batch {
    /// A batch without requests.
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends a request. `payload` follows the netlink header.
    pub fn push(&mut self, request: Request, payload: &[u8]) {
        let start = self.payloads.len();
        self.payloads.extend_from_slice(payload);
        self.requests.push((request, start..self.payloads.len()));
    }

    /// The number of requests.
    pub fn len(&self) -> usize {
        self.requests.len()
    }

    /// Whether there are no requests.
    pub fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    /// Returns to the first request, so that the batch can be sent again.
    pub fn rewind(&mut self) {
        self.next = 0;
    }
}

impl Source for Batch {
    fn write_next(&mut self, datagram: &mut Datagram) -> Option<Result<(), Unsendable>> {
        let (request, range) = self.requests.get(self.next)?.clone();
        self.next += 1;
        let payload = self.payloads.get(range).unwrap_or_default();
        Some(datagram.push(request, |out| out.bytes(payload)))
    }
}
