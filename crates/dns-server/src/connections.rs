//! Accepts TCP connections: a limited number, each for a limited time without a request.

use std::net::SocketAddr;
use std::time::Duration;

use futures_util::StreamExt as _;
use hickory_proto::op::SerialMessage;
use hickory_server::net::DnsStreamHandle as _;
use hickory_server::net::runtime::iocompat::AsyncIoTokioAsStd;
use hickory_server::net::tcp::TcpStream as MessageStream;
use hickory_server::net::xfer::Protocol;
use hickory_server::server::TimeoutStream;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use crate::client_limit::ClientLimit;
use crate::handler::Handler;

/// How many connections may be open. Further ones are closed at once.
const MOST_CONNECTIONS: usize = 256;

/// How many connections of one client may be open.
const MOST_CONNECTIONS_OF_CLIENT: usize = 32;

/// How long a connection stays open without a complete request.
const IDLE_TIME: Duration = Duration::from_secs(10);

/// How many replies of a connection may wait to be sent.
const WAITING_REPLIES: usize = 32;

/// How long to wait if no connection can be accepted, such as without a free file descriptor.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The limit of open connections.
pub(crate) fn limit() -> ClientLimit {
    ClientLimit::new(MOST_CONNECTIONS, MOST_CONNECTIONS_OF_CLIENT)
}

/// Accepts connections until the future is dropped.
pub(crate) async fn accept(listener: TcpListener, handler: Handler, limit: ClientLimit) {
    let mut open = JoinSet::new();
    loop {
        let (stream, client) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::debug!("a connection cannot be accepted: {error}");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        while open.try_join_next().is_some() {}
        let permit = match limit.acquire(client.ip()) {
            Ok(permit) => permit,
            Err(reached) => {
                handler.metrics.connection_refused(reached);
                tracing::debug!("{client}: closed, too many connections: {reached:?}");
                continue;
            }
        };
        let handler = handler.clone();
        open.spawn(async move {
            serve(stream, client, &handler).await;
            drop(permit);
        });
    }
}

/// Answers the requests of one connection, one after the other.
async fn serve(stream: TcpStream, client: SocketAddr, handler: &Handler) {
    let stream = AsyncIoTokioAsStd(stream);
    let (stream, mut replies) =
        MessageStream::from_stream_with_buffer_size(stream, client, WAITING_REPLIES);
    let mut messages = TimeoutStream::new(stream, IDLE_TIME);
    while let Some(Ok(message)) = messages.next().await {
        let (bytes, _) = message.into_parts();
        let Some(reply) = handler.respond(bytes, client, Protocol::Tcp).await else {
            continue;
        };
        if let Err(error) = replies.send(SerialMessage::new(reply, client)) {
            handler.metrics.reply_unsent();
            tracing::debug!("{client}: the reply cannot be sent: {error}");
        }
    }
}
