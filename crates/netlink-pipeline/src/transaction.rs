//! Requests of which the kernel does all or none: a batch of nfnetlink.

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
/// The kernel works through all of it before it answers (`nfnetlink_rcv_batch` in `net/netfilter/nfnetlink.c`): with an
/// acknowledgement for each request if all were done, else with the errors of those that cannot be done, and none is.
/// The frame around the requests is never acknowledged, for kernels before 6.10 would not do so.
#[derive(Debug)]
pub struct Transaction {
    datagram: Datagram,
    subsystem: u8,
    first: u32,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Unsent,
    /// So many acknowledgements are still to come.
    Waiting(u32),
}

impl Transaction {
    /// An empty transaction of a subsystem (`NFNL_SUBSYS_*`).
    pub fn new(subsystem: u8) -> Result<Self, Unsendable> {
        let mut datagram = Datagram::new(Limits::default(), 0);
        datagram.push(Request::new(BEGIN, 0), |out| frame(out, subsystem))?;
        Ok(Self {
            datagram,
            subsystem,
            first: 0,
            state: State::Unsent,
        })
    }

    /// Appends a request whose payload is what `fill` appends. On failure the transaction is as it was.
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

/// `struct nfgenmsg` of the frame: no family, version 0, the subsystem in network order.
fn frame(out: &mut Writer<'_>, subsystem: u8) {
    out.bytes(&[0, 0, 0, subsystem]);
}

impl Conversation for Transaction {
    fn next(&mut self, sequence: &mut Sequence) -> Next<'_> {
        match self.state {
            State::Unsent => {
                self.state = State::Waiting(self.count());
                let subsystem = self.subsystem;
                // Four bytes always fit.
                let _fits = self
                    .datagram
                    .push(Request::new(END, 0), |out| frame(out, subsystem));
                self.first = sequence.reserve(self.datagram.count());
                Next::Send(self.datagram.seal_silently(self.first))
            }
            State::Waiting(0) => Next::Done,
            State::Waiting(_) => Next::Receive,
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
            if let State::Waiting(left) = &mut self.state {
                *left = left.saturating_sub(1);
            }
        }
        Ok(())
    }

    fn lost(&mut self, why: Error) -> Result<(), Error> {
        Err(why)
    }
}
