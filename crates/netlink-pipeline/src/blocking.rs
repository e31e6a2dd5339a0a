//! Runs conversations over a blocking socket.

use rustix::net::sockopt::{self, Timeout};

use crate::decode_error::DecodeError;
use crate::exchange::{Exchange, Step};
use crate::writer::Writer;
use crate::{
    Conversation, Dump, Error, Message, Messages, NetlinkProtocol, Options, Outcome, Pipeline,
    Request, Socket, Source,
};

/// A connection to the kernel over one netlink protocol.
///
/// ```no_run
/// use netlink_pipeline::{Connection, NetlinkProtocol, Options, Request};
///
/// # fn main() -> Result<(), netlink_pipeline::Error> {
/// const RTM_GETLINK: u16 = 18;
/// let mut route = Connection::open(NetlinkProtocol::ROUTE, &Options::default())?;
/// let request = Request::new(RTM_GETLINK, 0);
/// let ifinfomsg = [0; 16];
/// let links = route.dump(request, &ifinfomsg, |message| Ok(Some(message.payload.len())))?;
/// println!("{} links", links.len());
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Connection {
    socket: Socket,
    exchange: Exchange,
    options: Options,
}

impl Connection {
    /// Opens a connection in the calling thread's network namespace.
    pub fn open(protocol: NetlinkProtocol, options: &Options) -> Result<Self, Error> {
        let socket = Socket::open(protocol, options)?;
        let timeout = Some(options.answer_timeout).filter(|timeout| !timeout.is_zero());
        sockopt::set_socket_timeout(&socket, Timeout::Recv, timeout).map_err(|errno| {
            Error::Socket {
                call: "SO_RCVTIMEO",
                source: errno.into(),
            }
        })?;
        Ok(Self {
            socket,
            exchange: Exchange::new(),
            options: *options,
        })
    }

    /// Sends everything a source has; one outcome for each message.
    ///
    /// An error means that the socket failed and every outcome is unknown.
    pub fn execute(&mut self, source: impl Source) -> Result<Vec<Outcome>, Error> {
        self.execute_with(source, |_, _| Ok(()))
    }

    /// As [`execute`](Self::execute), for requests that are answered: `on_answer` gets each request's index and answer.
    pub fn execute_with(
        &mut self,
        source: impl Source,
        on_answer: impl FnMut(usize, Message<'_>) -> Result<(), DecodeError>,
    ) -> Result<Vec<Outcome>, Error> {
        let buffer = self.socket.receive_buffer();
        let mut pipeline = Pipeline::new(source, self.options.limits, buffer, on_answer);
        self.converse(&mut pipeline)?;
        Ok(pipeline.into_outcomes())
    }

    /// Reads a table. `payload` is what follows the netlink header of the request, which needs no dump flags.
    pub fn dump<T>(
        &mut self,
        request: Request,
        payload: &[u8],
        decode: impl FnMut(Message<'_>) -> Result<Option<T>, DecodeError>,
    ) -> Result<Vec<T>, Error> {
        let fill = |out: &mut Writer<'_>| out.bytes(payload);
        let mut dump = Dump::new(request, fill, self.options.dump_attempts, decode)?;
        self.converse(&mut dump)?;
        Ok(dump.into_items())
    }

    /// Runs a conversation to its end.
    pub fn converse(&mut self, conversation: &mut impl Conversation) -> Result<(), Error> {
        let Self {
            socket, exchange, ..
        } = self;
        exchange.begin(socket)?;
        loop {
            match exchange.step(socket, conversation)? {
                Step::Sent(_) => {}
                Step::Done => return Ok(()),
                Step::MustReceive => {
                    let result = socket.receive(&mut exchange.buffer);
                    exchange.deliver(socket, result, conversation)?;
                }
            }
        }
    }

    /// What the connection was opened with.
    pub const fn options(&self) -> &Options {
        &self.options
    }

    /// The socket.
    pub const fn socket(&self) -> &Socket {
        &self.socket
    }
}

/// Notifications of one netlink protocol.
#[derive(Debug)]
pub struct Subscription {
    socket: Socket,
    exchange: Exchange,
}

impl Subscription {
    /// Becomes a member of multicast groups (`RTNLGRP_*`, `NFNLGRP_*`).
    pub fn open(
        protocol: NetlinkProtocol,
        groups: &[u32],
        options: &Options,
    ) -> Result<Self, Error> {
        Ok(Self {
            socket: Socket::open_member(protocol, groups, options)?,
            exchange: Exchange::new(),
        })
    }

    /// Waits for the next notifications.
    ///
    /// [`Error::Overrun`] means that some were lost: read the state again, then continue to receive.
    pub fn receive(&mut self) -> Result<Messages<'_>, Error> {
        let result = self.socket.receive(&mut self.exchange.buffer);
        self.exchange.notifications(result)
    }
}
