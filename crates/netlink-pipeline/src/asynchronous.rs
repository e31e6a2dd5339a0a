//! Runs conversations over a socket with tokio.

use std::io;

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::decode_error::DecodeError;
use crate::exchange::{Exchange, Step};
use crate::writer::Writer;
use crate::{
    Conversation, Dump, Error, Message, Messages, NetlinkProtocol, Options, Outcome, Pipeline,
    Request, Socket, Source,
};

/// Bytes of requests that count as one operation of a task's budget, of which tokio gives 128.
const OPERATION: usize = 512;

/// A connection to the kernel over one netlink protocol, for tokio (with I/O enabled).
///
/// The kernel works while a datagram is being sent, so sends occupy the thread, for about a millisecond at a time; other
/// tasks run in between. Dropping a future is safe: answers to what was given up are told
/// apart from those to what follows.
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

    /// Sends everything a source has; one outcome for each message.
    ///
    /// An error means that the socket failed and every outcome is unknown.
    pub async fn execute(&mut self, source: impl Source + Send) -> Result<Vec<Outcome>, Error> {
        self.execute_with(source, |_, _| Ok(())).await
    }

    /// As [`execute`](Self::execute), for requests that are answered: `on_answer` gets each request's index and answer.
    pub async fn execute_with(
        &mut self,
        source: impl Source + Send,
        on_answer: impl FnMut(usize, Message<'_>) -> Result<(), DecodeError> + Send,
    ) -> Result<Vec<Outcome>, Error> {
        let buffer = self.socket.get_ref().receive_buffer();
        let mut pipeline = Pipeline::new(source, self.options.limits, buffer, on_answer);
        self.converse(&mut pipeline).await?;
        Ok(pipeline.into_outcomes())
    }

    /// Reads a table. `payload` is what follows the netlink header of the request, which needs no dump flags.
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

    /// Runs a conversation to its end.
    pub async fn converse(
        &mut self,
        conversation: &mut (impl Conversation + Send),
    ) -> Result<(), Error> {
        let Self {
            socket, exchange, ..
        } = self;
        exchange.begin(socket.get_ref())?;
        loop {
            match exchange.step(socket.get_ref(), conversation)? {
                Step::Sent(bytes) => pause(bytes).await,
                Step::Done => return Ok(()),
                Step::MustReceive => {
                    let result = receive(socket, &mut exchange.buffer).await;
                    exchange.deliver(socket.get_ref(), result, conversation)?;
                }
            }
        }
    }

    /// What the connection was opened with.
    pub const fn options(&self) -> &Options {
        &self.options
    }

    /// The socket.
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
    /// Becomes a member of multicast groups (`RTNLGRP_*`, `NFNLGRP_*`). Must be called within a tokio runtime.
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

/// Lets other tasks run after some hundred requests: a pause costs more than a question, or a change.
async fn pause(sent: usize) {
    for _ in 0..=sent / OPERATION {
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

/// Receives a datagram: at once if one is there, which is the rule.
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
