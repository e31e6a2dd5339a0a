//! Accepts TCP connections: a limited number, each for a limited time without a request.

use std::net::SocketAddr;
use std::time::Duration;

use futures_util::StreamExt as _;
use hickory_proto::op::{MessageType, SerialMessage};
use hickory_server::net::runtime::TokioTime;
use hickory_server::net::runtime::iocompat::AsyncIoTokioAsStd;
use hickory_server::net::tcp::TcpStream as MessageStream;
use hickory_server::net::xfer::Protocol;
use hickory_server::net::{BufDnsStreamHandle, DnsStreamHandle as _};
use hickory_server::server::{Request, RequestHandler as _, ResponseHandle, TimeoutStream};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use crate::handler::Handler;

/// How many connections may be open. Further ones are closed at once.
const MOST_CONNECTIONS: usize = 256;

/// How long a connection stays open without a complete request.
const IDLE_TIME: Duration = Duration::from_secs(10);

/// How many replies of a connection may wait to be sent.
const WAITING_REPLIES: usize = 32;

/// How long to wait if no connection can be accepted, such as without a free file descriptor.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Bytes of the header of a message.
const HEADER_BYTES: usize = 12;

/// Accepts connections until the future is dropped.
pub(crate) async fn accept(listener: TcpListener, handler: Handler) {
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
        if open.len() >= MOST_CONNECTIONS {
            tracing::debug!("{client}: closed, because {MOST_CONNECTIONS} connections are open");
            continue;
        }
        let handler = handler.clone();
        open.spawn(async move { serve(stream, client, &handler).await });
    }
}

/// Answers the requests of one connection, one after the other.
async fn serve(stream: TcpStream, client: SocketAddr, handler: &Handler) {
    let stream = AsyncIoTokioAsStd(stream);
    let (stream, replies) =
        MessageStream::from_stream_with_buffer_size(stream, client, WAITING_REPLIES);
    let mut messages = TimeoutStream::new(stream, IDLE_TIME);
    while let Some(Ok(message)) = messages.next().await {
        let (bytes, _) = message.into_parts();
        answer(bytes, client, handler, replies.clone()).await;
    }
}

async fn answer(
    bytes: Vec<u8>,
    client: SocketAddr,
    handler: &Handler,
    mut replies: BufDnsStreamHandle,
) {
    let malformed = malformed(&bytes);
    match Request::from_bytes(bytes, client, Protocol::Tcp) {
        // An answer to a reply could go back and forth without end.
        Ok(request) if request.metadata.message_type == MessageType::Response => {}
        Ok(request) => {
            let handle = ResponseHandle::new(client, replies, Protocol::Tcp);
            handler
                .handle_request::<_, TokioTime>(&request, handle)
                .await;
        }
        Err(_) => {
            let reply = malformed.map(|bytes| SerialMessage::new(bytes, client));
            if let Some(Err(error)) = reply.map(|reply| replies.send(reply)) {
                tracing::debug!("{client}: the reply cannot be sent: {error}");
            }
        }
    }
}

/// The reply to a malformed request: its id and the code FORMERR; `None` if it is a reply itself, or
/// too short.
fn malformed(request: &[u8]) -> Option<Vec<u8>> {
    let [first, second, flags, ..] = request.get(..HEADER_BYTES)? else {
        return None;
    };
    let is_reply = flags & 0x80 != 0;
    let mut reply = vec![0; HEADER_BYTES];
    reply.splice(..4, [*first, *second, 0x80 | (flags & 0x79), 1]);
    (!is_reply).then_some(reply)
}
