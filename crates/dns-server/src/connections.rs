//! Accepts TCP connections: a limited number, each for a limited time without a request.

use std::net::SocketAddr;
use std::pin::pin;
use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use hickory_server::net::xfer::Protocol;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::client_limit::ClientLimit;
use crate::handler::Handler;
use crate::tcp_message::{receive, send};

/// How many connections may be open. Further ones are closed at once.
const MOST_CONNECTIONS: usize = 256;

/// How many connections of one client may be open.
const MOST_CONNECTIONS_OF_CLIENT: usize = 32;

/// How long a connection stays open without a complete request.
const IDLE_TIME: Duration = Duration::from_secs(10);

/// How long a client may take to receive a reply.
const REPLY_TIME: Duration = Duration::from_secs(10);

/// How many requests of a connection are answered at a time. Further ones are not read yet.
const MOST_REQUESTS: usize = 32;

/// The longest request; a question with all its options takes a few hundred bytes. All connections together hold at most
/// 32 MiB of requests.
const MOST_REQUEST_BYTES: u16 = 4096;

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

/// Answers the requests of one connection, each as soon as its answer is known (RFC 7766, 6.2.1.1). A client that closes
/// its side gets the replies that are missing.
async fn serve(stream: TcpStream, client: SocketAddr, handler: &Handler) {
    // Otherwise a reply waits until the client acknowledges the one before it.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!("{client}: {error}");
    }
    let (reader, mut writer) = stream.into_split();
    let requests = stream::unfold(reader, |mut reader| async move {
        let request = timeout(IDLE_TIME, receive(&mut reader, MOST_REQUEST_BYTES))
            .await
            .ok()?;
        Some((request.ok()?, reader))
    });
    let replies = requests.map(|request| handler.respond(request, client, Protocol::Tcp));
    let mut replies = pin!(replies.buffer_unordered(MOST_REQUESTS));
    while let Some(reply) = replies.next().await {
        let Some(reply) = reply else {
            continue;
        };
        match timeout(REPLY_TIME, send(&mut writer, &reply)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                tracing::debug!("{client}: the reply cannot be sent: {error}");
                return;
            }
            Err(_elapsed) => {
                handler.metrics.reply_not_received();
                tracing::debug!("{client}: does not receive its replies");
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use dns::ResponderOptions;
    use hickory_proto::op::{Message, Query, ResponseCode};
    use hickory_proto::rr::{Name, RecordType};
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    /// A server that has not read the cluster, so that it answers for a name of the cluster with SERVFAIL.
    async fn start(upstream: SocketAddr) -> SocketAddr {
        let options = ResponderOptions {
            domain: Name::from_ascii("cluster.local.").unwrap(),
            ttl: 5,
            node: "n1".into(),
            endpoints: Vec::new(),
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let handler = Handler::new(options, vec![upstream]);
        tokio::spawn(accept(listener, handler, limit()));
        address
    }

    fn question(id: u16, name: &str) -> Vec<u8> {
        let mut message = Message::query();
        message.metadata.id = id;
        let name = Name::from_ascii(name).unwrap();
        message.add_query(Query::query(name, RecordType::A));
        message.to_vec().unwrap()
    }

    fn on_one_thread(test: impl Future<Output = ()>) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(test);
    }

    #[test]
    fn a_question_that_waits_does_not_delay_the_next_and_is_answered_after_the_client_has_closed() {
        on_one_thread(async {
            // It accepts no connection, so a question waits until it fails.
            let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let server = start(silent.local_addr().unwrap()).await;
            let mut stream = TcpStream::connect(server).await.unwrap();
            for (id, name) in [(1, "www.example.com."), (2, "web.shop.svc.cluster.local.")] {
                send(&mut stream, &question(id, name)).await.unwrap();
            }
            stream.shutdown().await.unwrap();
            for id in [2, 1] {
                let reply = receive(&mut stream, u16::MAX).await.unwrap();
                let reply = Message::from_vec(&reply).unwrap();
                assert_eq!(reply.metadata.id, id);
                assert_eq!(reply.metadata.response_code, ResponseCode::ServFail);
            }
            assert_eq!(stream.read(&mut [0]).await.unwrap(), 0);
        });
    }

    #[test]
    fn a_request_that_is_too_long_ends_its_connection() {
        on_one_thread(async {
            let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let server = start(silent.local_addr().unwrap()).await;
            let mut stream = TcpStream::connect(server).await.unwrap();
            let longest = usize::from(MOST_REQUEST_BYTES);
            send(&mut stream, &vec![0; longest]).await.unwrap();
            receive(&mut stream, u16::MAX).await.unwrap();
            send(&mut stream, &vec![0; longest + 1]).await.unwrap();
            assert!(receive(&mut stream, u16::MAX).await.is_err());
        });
    }

    #[test]
    fn more_requests_than_are_answered_at_a_time_are_all_answered() {
        on_one_thread(async {
            let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let server = start(silent.local_addr().unwrap()).await;
            let mut stream = TcpStream::connect(server).await.unwrap();
            let count = u16::try_from(MOST_REQUESTS).unwrap() * 3;
            for id in 0..count {
                let question = question(id, "web.shop.svc.cluster.local.");
                send(&mut stream, &question).await.unwrap();
            }
            let mut answered = std::collections::BTreeSet::new();
            for _ in 0..count {
                let reply = receive(&mut stream, u16::MAX).await.unwrap();
                answered.insert(Message::from_vec(&reply).unwrap().metadata.id);
            }
            assert!(answered.into_iter().eq(0..count));
        });
    }
}
