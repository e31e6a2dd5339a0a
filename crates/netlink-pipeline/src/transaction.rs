//! Sends requests that the kernel applies together or not at all: a batch of nfnetlink.

use netlink_packet_core::{NLM_F_ACK, NLMSG_ERROR};

use crate::writer::Writer;
use crate::{
    Conversation, Datagram, Error, Limits, Messages, Next, Request, Sequence, Unsendable, ack,
};

/// `NFNL_MSG_BATCH_BEGIN` and `NFNL_MSG_BATCH_END` (`include/uapi/linux/netfilter/nfnetlink.h`).
const BEGIN: u16 = 0x10;
const END: u16 = 0x11;

/// A transaction of a netfilter subsystem, such as `nf_tables`, in one datagram.
///
/// The kernel processes the whole batch before it replies (`nfnetlink_rcv_batch` in `net/netfilter/nfnetlink.c`). It
/// acknowledges each request if all succeeded. Otherwise it sends the errors and applies none. The begin and end
/// messages are not acknowledged, because kernels before 6.10 do not support that.
#[derive(Debug)]
pub struct Transaction {
    datagram: Datagram,
    subsystem: u8,
    first: u32,
    state: TransactionState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TransactionState {
    Unsent,
    /// The number of acknowledgements that are still expected.
    Waiting(u32),
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
            state: TransactionState::Unsent,
        })
    }

    /// Appends a request. `fill` writes its payload. On failure the transaction is unchanged.
    pub fn push(
        &mut self,
        request: Request,
        fill: impl FnOnce(&mut Writer<'_>),
    ) -> Result<(), Unsendable> {
        let request = Request {
            flags: request.flags | NLM_F_ACK,
            ..request
        };
        self.datagram.push(request, fill)
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
                self.state = TransactionState::Waiting(self.count());
                let subsystem = self.subsystem;
                // Always fits: four bytes.
                let _fits = self
                    .datagram
                    .push(Request::new(END, 0), |out| frame(out, subsystem));
                self.first = sequence.reserve(self.datagram.count());
                Next::Send(self.datagram.seal_silently(self.first))
            }
            TransactionState::Waiting(0) => Next::Done,
            TransactionState::Waiting(_) => Next::Receive,
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
            if let TransactionState::Waiting(left) = &mut self.state {
                *left = left.saturating_sub(1);
            }
        }
        Ok(())
    }

    fn lost(&mut self, why: Error) -> Result<(), Error> {
        Err(why)
    }
}
