//! Runs conversations over a socket with tokio.

use std::io;

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::decode_error::DecodeError;
use crate::exchange::{Exchange, StepResult};
use crate::writer::Writer;
use crate::{
    Conversation, Dump, Error, Message, Messages, NetlinkProtocol, Options, Pipeline, Request,
    RequestResult, Socket, Source,
};

/// Bytes, sent or received, that count as one operation of a task's budget; tokio gives a task 128.
const OPERATION: usize = 512;

/// A connection to the kernel over one netlink protocol, for tokio (with I/O enabled).
///
/// The kernel processes a datagram inside the send call, so a send occupies the thread for about a millisecond. Other
/// tasks run between two sends, and after each 64 KiB of a dump. Dropping a future is safe: replies to an abandoned request are not mistaken for replies
/// to the next one.
#[derive(Debug)]
pub struct AsyncConnection {
    socket: AsyncFd<Socket>,
    exchange: Exchange,
    options: Options,
}

impl AsyncConnection {
    /// Opens a connection in the calling thread's network namespace. Must be called within a tokio runtime.
    pub fn open(protocol: NetlinkProtocol, options: &Options) -> Result<Self, Error> {
        Ok(Self {
            socket: register(Socket::open(protocol, options)?)?,
            exchange: Exchange::new(),
            options: *options,
        })
    }

    /// Sends every message of a source and returns one result for each.
    ///
    /// An error means that the socket failed and every result is unknown.
    pub async fn execute(
        &mut self,
        source: impl Source + Send,
    ) -> Result<Vec<RequestResult>, Error> {
        self.execute_with(source, |_, _| Ok(())).await
    }

    /// Does the same for requests with replies: `on_answer` gets the index of each request and its reply.
    pub async fn execute_with(
        &mut self,
        source: impl Source + Send,
        on_answer: impl FnMut(usize, Message<'_>) -> Result<(), DecodeError> + Send,
    ) -> Result<Vec<RequestResult>, Error> {
        let buffer = self.socket.get_ref().receive_buffer();
        let mut pipeline = Pipeline::new(source, self.options.limits, buffer, on_answer);
        self.converse(&mut pipeline).await?;
        Ok(pipeline.into_results())
    }

    /// Dumps a table. `payload` is the request's payload after the netlink header. Dump flags are added.
    pub async fn dump<T: Send>(
        &mut self,
        request: Request,
        payload: &[u8],
        decode: impl FnMut(Message<'_>) -> Result<Option<T>, DecodeError> + Send,
    ) -> Result<Vec<T>, Error> {
        let fill = |out: &mut Writer<'_>| out.bytes(payload);
        let mut dump = Dump::new(request, fill, self.options.dump_attempts, decode)?;
        self.converse(&mut dump).await?;
        Ok(dump.into_items())
    }

    /// Runs a conversation until it is done.
    pub async fn converse(
        &mut self,
        conversation: &mut (impl Conversation + Send),
    ) -> Result<(), Error> {
        let Self {
            socket, exchange, ..
        } = self;
        while let Some(bytes) = exchange.begin(socket.get_ref())? {
            pause(bytes).await;
        }
        loop {
            match exchange.step(socket.get_ref(), conversation)? {
                StepResult::Sent(bytes) => pause(bytes).await,
                StepResult::Done => return Ok(()),
                StepResult::MustReceive => {
                    let result = receive(socket, &mut exchange.buffer).await;
                    let bytes = *result.as_ref().unwrap_or(&0);
                    exchange.deliver(socket.get_ref(), result, conversation)?;
                    pause(bytes).await;
                }
            }
        }
    }

    /// The options that the connection was opened with.
    pub const fn options(&self) -> &Options {
        &self.options
    }

    /// The socket of the connection.
    pub fn socket(&self) -> &Socket {
        self.socket.get_ref()
    }
}

/// Notifications of one netlink protocol, for tokio (with I/O enabled).
#[derive(Debug)]
pub struct AsyncSubscription {
    socket: AsyncFd<Socket>,
    exchange: Exchange,
}

impl AsyncSubscription {
    /// Joins multicast groups (`RTNLGRP_*`, `NFNLGRP_*`). Must be called within a tokio runtime.
    pub fn open(
        protocol: NetlinkProtocol,
        groups: &[u32],
        options: &Options,
    ) -> Result<Self, Error> {
        Ok(Self {
            socket: register(Socket::open_member(protocol, groups, options)?)?,
            exchange: Exchange::new(),
        })
    }

    /// Waits for the next notifications. Dropping the future loses none.
    ///
    /// [`Error::Overrun`] means that some were lost: read the state again, then continue to receive.
    pub async fn receive(&mut self) -> Result<Messages<'_>, Error> {
        let result = receive(&self.socket, &mut self.exchange.buffer).await;
        self.exchange.notifications(result)
    }
}

/// Yields to other tasks after some hundred requests, or two full datagrams of a dump. Yielding after each request would
/// cost more than the request.
///
/// Receiving must count, too: during a dump a datagram is always there, so nothing else waits.
async fn pause(bytes: usize) {
    for _ in 0..=bytes / OPERATION {
        tokio::task::coop::consume_budget().await;
    }
}

/// Registers the socket with tokio for reading.
#[expect(
    deprecated,
    reason = "the successor is unsafe for the sake of types that change their descriptor; `Socket` keeps its own"
)]
fn register(socket: Socket) -> Result<AsyncFd<Socket>, Error> {
    AsyncFd::with_interest(socket, Interest::READABLE).map_err(Error::socket("epoll"))
}

/// Receives a datagram. Tries without waiting first, because one is usually there.
async fn receive(socket: &AsyncFd<Socket>, buffer: &mut Vec<u8>) -> io::Result<usize> {
    match socket.get_ref().try_receive(buffer) {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
        result => return result,
    }
    loop {
        let mut ready = socket.readable().await?;
        if let Ok(result) = ready.try_io(|socket| socket.get_ref().try_receive(buffer)) {
            return result;
        }
    }
}
