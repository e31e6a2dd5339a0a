//! Forwards questions about other names to upstream servers.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use dns::DnsTransport;
use hickory_proto::op::{Edns, Message, MessageType, Query, ResponseCode};
use tokio::net::{TcpStream, UdpSocket};
use tokio::time::timeout;

use crate::client_limit::{ClientLimit, LimitReached};
use crate::exchange::{AnswerSource, UpstreamFailure};
use crate::metrics::DnsMetrics;
use crate::reply::MOST_UDP_BYTES;
use crate::tcp_message::{receive, send};

/// How long an upstream server may take.
const UPSTREAM_TIMEOUT: Duration = Duration::from_secs(2);

/// How often each upstream server is asked.
const ROUNDS: usize = 2;

/// Servers are asked again within this time, so that the client has an answer before it asks again after 5 s, as most do.
const REPEAT_WITHIN: Duration = Duration::from_secs(3);

/// The longest datagram that is received: some servers ignore the limit of the question, and send what most resolvers permit.
const RECEIVED_UDP_BYTES: usize = 4_096;

/// How many questions may wait for upstream servers.
const MOST_WAITING: usize = 1_000;

/// How many questions of one client may wait.
const MOST_WAITING_OF_CLIENT: usize = 100;

/// Why a question has no answer from an upstream server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ForwardError {
    /// There is no upstream server.
    NoUpstream,
    /// Too many questions wait.
    Limit,
    /// No server answers.
    Failed,
}

/// The parts of a client's message, besides its question, that the upstream server gets.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct QueryFlags {
    /// Whether it wants the DNSSEC records, too; `None` if it does not use EDNS. Then the upstream server gets no EDNS either,
    /// which it may not know (RFC 6891, 6.2.2).
    pub(crate) dnssec_ok: Option<bool>,
    /// It wants to know whether the records are authentic (RFC 6840, 5.7).
    pub(crate) authentic_data: bool,
    /// It checks the records itself, and wants those that are not authentic, too (RFC 4035, 3.2.2).
    pub(crate) checking_disabled: bool,
}

#[derive(Debug)]
pub(crate) struct Forwarder {
    upstreams: Vec<SocketAddr>,
    /// The server that answered last is asked first.
    preferred: AtomicUsize,
    waiting: ClientLimit,
    metrics: Arc<DnsMetrics>,
}

impl ForwardError {
    pub(crate) fn source(self) -> AnswerSource {
        match self {
            Self::NoUpstream | Self::Limit => AnswerSource::None,
            Self::Failed => AnswerSource::Upstream,
        }
    }
}

impl Forwarder {
    pub(crate) fn new(upstreams: Vec<SocketAddr>, metrics: Arc<DnsMetrics>) -> Self {
        Self {
            upstreams,
            preferred: AtomicUsize::new(0),
            waiting: ClientLimit::new(MOST_WAITING, MOST_WAITING_OF_CLIENT),
            metrics,
        }
    }

    pub(crate) fn has_upstreams(&self) -> bool {
        !self.upstreams.is_empty()
    }

    /// How many questions wait for upstream servers.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.in_use()
    }

    /// Asks one upstream server after the other until one answers, in the same way as the client asks. A datagram may be
    /// lost, so servers that do not answer are asked again. The answer may be truncated. If servers only report that they
    /// cannot answer, it is what the first of them reports.
    pub(crate) async fn ask(
        &self,
        query: &Query,
        flags: QueryFlags,
        transport: DnsTransport,
        client: IpAddr,
    ) -> Result<Message, ForwardError> {
        if self.upstreams.is_empty() {
            return Err(ForwardError::NoUpstream);
        }
        let permit = self.waiting.acquire(client);
        let _permit = permit.map_err(|limit| self.refused(client, limit))?;
        let first = self.preferred.load(Ordering::Relaxed);
        let count = self.upstreams.len();
        let (began, mut unable) = (Instant::now(), Vec::new());
        for step in 0..ROUNDS * count {
            let is_repeated = step >= count;
            if is_repeated && began.elapsed() >= REPEAT_WITHIN {
                break;
            }
            let at = (first + step) % count;
            let Some(&upstream) = self.upstreams.get(at) else {
                continue;
            };
            if unable.iter().any(|(known, _)| *known == at) {
                continue;
            }
            let message = question(query, flags);
            let asked = Instant::now();
            match exchange_in_time(upstream, &message, transport).await {
                Ok(answer) => {
                    let code = answer.metadata.response_code;
                    self.metrics.upstream_answered(at, code, asked.elapsed());
                    if is_unable(code) {
                        tracing::debug!("upstream {upstream} cannot answer: {code}");
                        unable.push((at, answer));
                        continue;
                    }
                    // A client can ask for a name that only one server cannot resolve: that must not change which server
                    // all clients ask.
                    if unable.is_empty() {
                        self.preferred.store(at, Ordering::Relaxed);
                    }
                    return Ok(answer);
                }
                Err(failure) => {
                    self.metrics.upstream_failed(at, failure);
                    tracing::debug!("upstream {upstream} does not answer: {failure:?}");
                }
            }
        }
        let reported = unable.into_iter().next();
        reported
            .map(|(_, answer)| answer)
            .ok_or(ForwardError::Failed)
    }

    fn refused(&self, client: IpAddr, limit: LimitReached) -> ForwardError {
        self.metrics.question_refused(limit);
        tracing::debug!("{client}: too many questions wait for upstream servers: {limit:?}");
        ForwardError::Limit
    }
}

/// Whether another server may know the answer, as resolvers assume.
fn is_unable(code: ResponseCode) -> bool {
    matches!(
        code,
        ResponseCode::ServFail | ResponseCode::Refused | ResponseCode::NotImp
    )
}

async fn exchange_in_time(
    upstream: SocketAddr,
    question: &Message,
    over: DnsTransport,
) -> Result<Message, UpstreamFailure> {
    match timeout(UPSTREAM_TIMEOUT, exchange(upstream, question, over)).await {
        Ok(answer) => answer.ok_or(UpstreamFailure::Unreachable),
        Err(_elapsed) => Err(UpstreamFailure::Timeout),
    }
}

/// A question with a random id and no options of the client.
fn question(query: &Query, flags: QueryFlags) -> Message {
    let mut message = Message::query();
    message.metadata.recursion_desired = true;
    message.metadata.authentic_data = flags.authentic_data;
    message.metadata.checking_disabled = flags.checking_disabled;
    message.add_query(query.clone());
    if let Some(dnssec_ok) = flags.dnssec_ok {
        let mut edns = Edns::new();
        edns.set_max_payload(MOST_UDP_BYTES);
        edns.set_dnssec_ok(dnssec_ok);
        message.set_edns(edns);
    }
    message
}

async fn exchange(upstream: SocketAddr, question: &Message, over: DnsTransport) -> Option<Message> {
    let bytes = question.to_vec().ok()?;
    match over {
        DnsTransport::Udp => over_udp(upstream, question, &bytes).await,
        DnsTransport::Tcp => over_tcp(upstream, question, &bytes).await,
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
    let mut buffer = vec![0; RECEIVED_UDP_BYTES];
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
    send(&mut stream, bytes).await.ok()?;
    let answer = receive(&mut stream, u16::MAX).await.ok()?;
    answer_to(question, &answer)
}

/// The message, if it answers the question. A server that does not know EDNS may answer FORMERR without the question.
fn answer_to(question: &Message, bytes: &[u8]) -> Option<Message> {
    let answer = Message::from_vec(bytes).ok()?;
    let is_refusal =
        answer.queries.is_empty() && answer.metadata.response_code == ResponseCode::FormErr;
    let is_answer = answer.metadata.id == question.metadata.id
        && answer.metadata.message_type == MessageType::Response
        && (is_refusal || answer.queries == question.queries);
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
        let question = question(&query(), QueryFlags::default());
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
    fn a_refusal_of_edns_is_an_answer_without_the_question() {
        let question = question(&query(), QueryFlags::default());
        let mut answer = question.clone().into_response();
        answer.queries.clear();
        answer.metadata.response_code = ResponseCode::ServFail;
        assert!(answer_to(&question, &answer.to_vec().unwrap()).is_none());
        answer.metadata.response_code = ResponseCode::FormErr;
        assert!(answer_to(&question, &answer.to_vec().unwrap()).is_some());
    }

    #[test]
    fn the_question_has_edns_and_the_flags_as_the_client() {
        for number in 0..12 {
            let flags = QueryFlags {
                dnssec_ok: [None, Some(false), Some(true)][number % 3],
                authentic_data: number & 1 != 0,
                checking_disabled: number & 2 != 0,
            };
            let bytes = question(&query(), flags).to_vec().unwrap();
            let asked = Message::from_vec(&bytes).unwrap();
            let edns = asked.edns.as_ref();
            let found = QueryFlags {
                dnssec_ok: edns.map(|edns| edns.flags().dnssec_ok),
                authentic_data: asked.metadata.authentic_data,
                checking_disabled: asked.metadata.checking_disabled,
            };
            assert_eq!(found, flags);
        }
    }

    fn runtime() -> tokio::runtime::Runtime {
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap()
    }

    /// A server that answers every question with this code.
    async fn upstream(code: ResponseCode) -> SocketAddr {
        lossy_upstream(code, 0).await
    }

    /// A server that does not receive the first questions.
    async fn lossy_upstream(code: ResponseCode, mut lost: usize) -> SocketAddr {
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let address = socket.local_addr().unwrap();
        tokio::spawn(async move {
            let mut buffer = [0; 512];
            loop {
                let (length, client) = socket.recv_from(&mut buffer).await.unwrap();
                if lost > 0 {
                    lost -= 1;
                    continue;
                }
                let question = Message::from_vec(&buffer[..length]).unwrap();
                let mut answer = question.into_response();
                answer.metadata.response_code = code;
                let bytes = answer.to_vec().unwrap();
                socket.send_to(&bytes, client).await.unwrap();
            }
        });
        address
    }

    /// The code of the answer to a client.
    async fn asked(upstreams: Vec<SocketAddr>) -> ResponseCode {
        let metrics = Arc::new(DnsMetrics::new(&upstreams));
        let forwarder = Forwarder::new(upstreams, metrics);
        let client = IpAddr::from([10, 244, 1, 7]);
        let (query, flags) = (query(), QueryFlags::default());
        let answer = forwarder.ask(&query, flags, DnsTransport::Udp, client);
        answer.await.unwrap().metadata.response_code
    }

    #[test]
    fn a_server_that_cannot_answer_is_followed_by_the_next_and_stays_the_first() {
        use ResponseCode::{NXDomain, NoError, NotImp, Refused, ServFail};
        runtime().block_on(async {
            for (codes, expected) in [
                ([ServFail, NoError], NoError),
                ([Refused, NXDomain], NXDomain),
                ([NotImp, ServFail], NotImp),
                ([NXDomain, NoError], NXDomain),
            ] {
                let upstreams = vec![upstream(codes[0]).await, upstream(codes[1]).await];
                let metrics = Arc::new(DnsMetrics::new(&upstreams));
                let forwarder = Forwarder::new(upstreams, metrics);
                let client = IpAddr::from([10, 244, 1, 7]);
                let (query, flags) = (query(), QueryFlags::default());
                let answer = forwarder.ask(&query, flags, DnsTransport::Udp, client);
                let code = answer.await.unwrap().metadata.response_code;
                assert_eq!(code, expected, "{codes:?}");
                assert_eq!(forwarder.preferred.load(Ordering::Relaxed), 0, "{codes:?}");
            }
        });
    }

    #[test]
    fn a_lost_datagram_is_sent_again_to_an_only_server() {
        runtime().block_on(async {
            let upstreams = vec![lossy_upstream(ResponseCode::NoError, 1).await];
            assert_eq!(asked(upstreams).await, ResponseCode::NoError);
        });
    }

    #[test]
    fn a_lost_datagram_is_sent_again_although_another_server_refuses() {
        runtime().block_on(async {
            let refusing = upstream(ResponseCode::Refused).await;
            let lossy = lossy_upstream(ResponseCode::NoError, 1).await;
            let code = asked(vec![refusing, lossy]).await;
            assert_eq!(code, ResponseCode::NoError);
        });
    }

    #[test]
    fn questions_beyond_the_limit_fail_at_once() {
        let runtime = runtime();
        let silent = runtime.block_on(UdpSocket::bind("127.0.0.1:0")).unwrap();
        let silent = vec![silent.local_addr().unwrap()];
        let metrics = Arc::new(DnsMetrics::new(&silent));
        let forwarder = Forwarder::new(silent, metrics);
        let client = |number: usize| IpAddr::from([10, 244, 1, u8::try_from(number).unwrap()]);
        let hold = |number, count| -> Vec<_> {
            let permits = (0..count).map(|_| forwarder.waiting.acquire(client(number)));
            permits.collect::<Result<_, _>>().unwrap()
        };
        let query = query();
        let flags = QueryFlags::default();
        let ask = |number| forwarder.ask(&query, flags, DnsTransport::Udp, client(number));
        let soon = Duration::from_millis(50);
        runtime.block_on(async {
            let of_one = hold(0, MOST_WAITING_OF_CLIENT);
            assert_eq!(ask(0).await.unwrap_err(), ForwardError::Limit);
            let waited = timeout(soon, ask(1)).await;
            assert!(
                waited.is_err(),
                "another client waits for the silent server"
            );
            assert_eq!(forwarder.waiting(), MOST_WAITING_OF_CLIENT);

            let others = 1..MOST_WAITING / MOST_WAITING_OF_CLIENT;
            let all: Vec<_> = others
                .map(|number| hold(number, MOST_WAITING_OF_CLIENT))
                .collect();
            assert_eq!(ask(99).await.unwrap_err(), ForwardError::Limit);
            drop(of_one);
            assert!(timeout(soon, ask(0)).await.is_err());
            drop(all);
            assert_eq!(forwarder.waiting(), 0);
        });
    }
}
