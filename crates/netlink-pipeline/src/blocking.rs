//! Runs conversations over a blocking socket.

use rustix::net::sockopt::{self, Timeout};

use crate::decode_error::DecodeError;
use crate::exchange::{Exchange, StepResult};
use crate::writer::Writer;
use crate::{
    Conversation, Dump, Error, Message, Messages, NetlinkProtocol, Options, Pipeline, Request,
    RequestResult, Socket, Source,
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

    /// Sends every message of a source and returns one result for each.
    ///
    /// An error means that the socket failed and every result is unknown.
    pub fn execute(&mut self, source: impl Source) -> Result<Vec<RequestResult>, Error> {
        self.execute_with(source, |_, _| Ok(()))
    }

    /// Does the same for requests with replies: `on_answer` gets the index of each request and its reply.
    pub fn execute_with(
        &mut self,
        source: impl Source,
        on_answer: impl FnMut(usize, Message<'_>) -> Result<(), DecodeError>,
    ) -> Result<Vec<RequestResult>, Error> {
        let buffer = self.socket.receive_buffer();
        let mut pipeline = Pipeline::new(source, self.options.limits, buffer, on_answer);
        self.converse(&mut pipeline)?;
        Ok(pipeline.into_results())
    }

    /// Dumps a table. `payload` is the request's payload after the netlink header. Dump flags are added.
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

    /// Runs a conversation until it is done.
    pub fn converse(&mut self, conversation: &mut impl Conversation) -> Result<(), Error> {
        let Self {
            socket, exchange, ..
        } = self;
        while exchange.begin(socket)?.is_some() {}
        loop {
            match exchange.step(socket, conversation)? {
                StepResult::Sent(_) => {}
                StepResult::Done => return Ok(()),
                StepResult::MustReceive => {
                    let result = socket.receive(&mut exchange.buffer);
                    exchange.deliver(socket, result, conversation)?;
                }
            }
        }
    }

    /// The options that the connection was opened with.
    pub const fn options(&self) -> &Options {
        &self.options
    }

    /// The socket of the connection.
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
    /// Joins multicast groups (`RTNLGRP_*`, `NFNLGRP_*`).
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
