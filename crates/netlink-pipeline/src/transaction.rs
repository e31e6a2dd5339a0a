//! Sends requests that the kernel applies together or not at all: a batch of nfnetlink.

use netlink_packet_core::NLMSG_ERROR;

use crate::writer::Writer;
use crate::{
    Conversation, Datagram, Error, Limits, Messages, Next, Request, Sequence, Unsendable, ack,
};

/// `NFNL_MSG_BATCH_BEGIN` and `NFNL_MSG_BATCH_END` (`include/uapi/linux/netfilter/nfnetlink.h`).
const BEGIN: u16 = 0x10;
const END: u16 = 0x11;

/// Longest transaction without its end message, in bytes. The kernel refuses a datagram (`EMSGSIZE`) that is longer than
/// the send buffer without 32 bytes, and the default send buffer (`net.core.wmem_default`) has 208 KiB.
const MAX_BYTES: usize = 192 << 10;

/// A transaction of a netfilter subsystem, such as `nf_tables`, in one datagram.
///
/// The kernel processes the whole batch before it replies (`nfnetlink_rcv_batch` in `net/netfilter/nfnetlink.c`). It
/// sends the error of each refused request, in order, whether or not an acknowledgement was requested, and then applies
/// none. If the commit fails, it sends an error with the number of the begin message before all other replies. So the
/// acknowledgement of the last request, as the first reply, means that all were applied. The begin and end messages are
/// not acknowledged, because kernels before 6.10 do not support that.
///
/// All requests together have at most 192 KiB, because a transaction is never split.
#[derive(Debug)]
pub struct Transaction {
    datagram: Datagram,
    subsystem: u8,
    /// The sequence number of the begin message.
    first: u32,
    /// The sequence number of the last request.
    last: u32,
    state: TransactionState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TransactionState {
    Unsent,
    Waiting,
    Done,
}

impl Transaction {
    /// An empty transaction for a subsystem (`NFNL_SUBSYS_*`).
    pub fn new(subsystem: u8) -> Result<Self, Unsendable> {
        let mut datagram = Datagram::new(Limits::default(), 0);
        datagram.push(Request::new(BEGIN, 0), |out| frame(out, subsystem))?;
        Ok(Self {
            datagram,
            subsystem,
            first: 0,
            last: 0,
            state: TransactionState::Unsent,
        })
    }

    /// Appends a request. `fill` writes its payload. On failure, such as a transaction of more than 192 KiB, the
    /// transaction is unchanged.
    pub fn push(
        &mut self,
        request: Request,
        fill: impl FnOnce(&mut Writer<'_>),
    ) -> Result<(), Unsendable> {
        self.datagram.push_within(MAX_BYTES, request, fill)
    }

    /// The number of requests.
    pub const fn count(&self) -> u32 {
        self.datagram.count().saturating_sub(1)
    }
}

/// Writes the `struct nfgenmsg` of the begin or end message: no family, version 0, the subsystem in network order.
fn frame(out: &mut Writer<'_>, subsystem: u8) {
    out.bytes(&[0, 0, 0, subsystem]);
}

impl Conversation for Transaction {
    fn next(&mut self, sequence: &mut Sequence) -> Next<'_> {
        match self.state {
            TransactionState::Unsent => {
                let requests = self.count();
                if requests == 0 {
                    self.state = TransactionState::Done;
                    return Next::Done;
                }
                // Requests an acknowledgement of the last request. The numbers follow.
                self.datagram.seal(0);
                let subsystem = self.subsystem;
                // Always fits: four bytes.
                let _fits = self
                    .datagram
                    .push(Request::new(END, 0), |out| frame(out, subsystem));
                self.first = sequence.reserve(self.datagram.count());
                self.last = self.first.wrapping_add(requests);
                self.state = TransactionState::Waiting;
                Next::Send(self.datagram.seal_silently(self.first))
            }
            TransactionState::Waiting => Next::Receive,
            TransactionState::Done => Next::Done,
        }
    }

    fn received(&mut self, datagram: &[u8]) -> Result<(), Error> {
        for message in Messages::new(datagram) {
            let message = message?;
            let is_mine = message.sequence.wrapping_sub(self.first) < self.datagram.count();
            if message.kind != NLMSG_ERROR || !is_mine {
                continue;
            }
            if let Some(nack) = ack::read_error(&message)? {
                return Err(Error::Refused(nack));
            }
            if message.sequence == self.last {
                self.state = TransactionState::Done;
            }
        }
        Ok(())
    }

    fn lost(&mut self, why: Error) -> Result<(), Error> {
        Err(why)
    }
}
