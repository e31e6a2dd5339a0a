//! Forwards questions about other names to upstream servers.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use hickory_proto::op::{Edns, Message, MessageType, Query};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpStream, UdpSocket};
use tokio::sync::Semaphore;
use tokio::time::timeout;

use crate::reply::MOST_UDP_BYTES;

/// How long an upstream server may take.
const UPSTREAM_TIMEOUT: Duration = Duration::from_secs(2);

/// How many questions may wait for upstream servers.
const MOST_PENDING: usize = 1_000;

/// Why a question has no answer from an upstream server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ForwardError {
    /// There is no upstream server.
    NoUpstream,
    /// Too many questions wait, or no server answers.
    Failed,
}

/// How to ask an upstream server: as the client asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UpstreamTransport {
    Udp,
    Tcp,
}

#[derive(Debug)]
pub(crate) struct Forwarder {
    upstreams: Vec<SocketAddr>,
    /// The server that answered last is asked first.
    preferred: AtomicUsize,
    pending: Semaphore,
}

impl Forwarder {
    pub(crate) fn new(upstreams: Vec<SocketAddr>) -> Self {
        Self {
            upstreams,
            preferred: AtomicUsize::new(0),
            pending: Semaphore::new(MOST_PENDING),
        }
    }

    pub(crate) fn has_upstreams(&self) -> bool {
        !self.upstreams.is_empty()
    }

    /// Asks one upstream server after the other until one answers. The answer may be truncated.
    pub(crate) async fn ask(
        &self,
        query: &Query,
        is_dnssec: bool,
        transport: UpstreamTransport,
    ) -> Result<Message, ForwardError> {
        if self.upstreams.is_empty() {
            return Err(ForwardError::NoUpstream);
        }
        let Ok(_pending) = self.pending.try_acquire() else {
            tracing::debug!("{MOST_PENDING} questions wait for upstream servers; one is refused");
            return Err(ForwardError::Failed);
        };
        let first = self.preferred.load(Ordering::Relaxed);
        for at in (0..self.upstreams.len()).map(|step| (first + step) % self.upstreams.len()) {
            let Some(&upstream) = self.upstreams.get(at) else {
                continue;
            };
            let message = question(query, is_dnssec);
            let answer = exchange(upstream, &message, transport);
            match timeout(UPSTREAM_TIMEOUT, answer).await {
                Ok(Some(answer)) => {
                    self.preferred.store(at, Ordering::Relaxed);
                    return Ok(answer);
                }
                Ok(None) => tracing::debug!("upstream {upstream} cannot be asked"),
                Err(_elapsed) => tracing::debug!("upstream {upstream} does not answer"),
            }
        }
        Err(ForwardError::Failed)
    }
}

/// A question with a random id and no options of the client.
fn question(query: &Query, is_dnssec: bool) -> Message {
    let mut message = Message::query();
    message.metadata.recursion_desired = true;
    message.add_query(query.clone());
    let mut edns = Edns::new();
    edns.set_max_payload(MOST_UDP_BYTES);
    edns.set_dnssec_ok(is_dnssec);
    message.set_edns(edns);
    message
}

async fn exchange(
    upstream: SocketAddr,
    question: &Message,
    over: UpstreamTransport,
) -> Option<Message> {
    let bytes = question.to_vec().ok()?;
    match over {
        UpstreamTransport::Udp => over_udp(upstream, question, &bytes).await,
        UpstreamTransport::Tcp => over_tcp(upstream, question, &bytes).await,
    }
}

/// The socket receives only from the upstream server. A datagram that does not answer the question is skipped.
async fn over_udp(upstream: SocketAddr, question: &Message, bytes: &[u8]) -> Option<Message> {
    let any: IpAddr = match upstream {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind((any, 0)).await.ok()?;
    socket.connect(upstream).await.ok()?;
    socket.send(bytes).await.ok()?;
    // The question's EDNS permits no longer message.
    let mut buffer = [0; MOST_UDP_BYTES as usize];
    loop {
        let length = socket.recv(&mut buffer).await.ok()?;
        let answer = answer_to(question, buffer.get(..length)?);
        if answer.is_some() {
            return answer;
        }
    }
}

async fn over_tcp(upstream: SocketAddr, question: &Message, bytes: &[u8]) -> Option<Message> {
    let mut stream = TcpStream::connect(upstream).await.ok()?;
    let length = u16::try_from(bytes.len()).ok()?;
    let mut sent = length.to_be_bytes().to_vec();
    sent.extend_from_slice(bytes);
    stream.write_all(&sent).await.ok()?;
    let length = stream.read_u16().await.ok()?;
    let mut buffer = vec![0; usize::from(length)];
    stream.read_exact(&mut buffer).await.ok()?;
    answer_to(question, &buffer)
}

/// The message, if it answers the question.
fn answer_to(question: &Message, bytes: &[u8]) -> Option<Message> {
    let answer = Message::from_vec(bytes).ok()?;
    let is_answer = answer.metadata.id == question.metadata.id
        && answer.metadata.message_type == MessageType::Response
        && answer.queries == question.queries;
    is_answer.then_some(answer)
}

#[cfg(test)]
mod tests {
    use hickory_proto::rr::{Name, RecordType};

    use super::*;

    fn query() -> Query {
        Query::query(Name::from_ascii("example.com.").unwrap(), RecordType::A)
    }

    #[test]
    fn only_the_answer_to_the_question_counts() {
        let question = question(&query(), false);
        let mut answer = question.clone().into_response();
        let is_taken = |answer: &Message| answer_to(&question, &answer.to_vec().unwrap()).is_some();
        assert!(is_taken(&answer));
        answer.metadata.id ^= 1;
        assert!(!is_taken(&answer));
        answer.metadata.id ^= 1;
        answer.metadata.message_type = MessageType::Query;
        assert!(!is_taken(&answer));
        answer.metadata.message_type = MessageType::Response;
        answer.queries = vec![Query::query(
            Name::from_ascii("example.org.").unwrap(),
            RecordType::A,
        )];
        assert!(!is_taken(&answer));
        assert!(answer_to(&question, b"no message").is_none());
    }

    #[test]
    fn questions_beyond_the_limit_fail_at_once() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let silent = runtime.block_on(UdpSocket::bind("127.0.0.1:0")).unwrap();
        let forwarder = Forwarder::new(vec![silent.local_addr().unwrap()]);
        runtime.block_on(async {
            let all = forwarder
                .pending
                .try_acquire_many(u32::try_from(MOST_PENDING).unwrap());
            let refused = forwarder.ask(&query(), false, UpstreamTransport::Udp).await;
            assert_eq!(refused.unwrap_err(), ForwardError::Failed);
            drop(all);
            let query = query();
            let waiting = forwarder.ask(&query, false, UpstreamTransport::Udp);
            let waited = timeout(Duration::from_millis(50), waiting).await;
            assert!(waited.is_err(), "it waits for the silent server");
        });
    }
}
