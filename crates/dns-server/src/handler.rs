//! Handles requests: which of them have an answer, and where it comes from.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use cluster::event::Batch;
use dns::{DnsTransport, ResponderOptions, Turn};
use hickory_proto::op::{
    Header, HeaderCounts, LowerQuery, Message, MessageType, OpCode, Query, ResponseCode,
};
use hickory_proto::rr::{DNSClass, Name, RecordType};
use hickory_server::net::runtime::Time;
use hickory_server::net::xfer::Protocol;
use hickory_server::server::{Request, RequestHandler, ResponseHandler, ResponseInfo};

use crate::cluster_state::{ClusterAnswer, ClusterState};
use crate::exchange::{AnswerSource, AnsweredRequest, transport};
use crate::forwarder::{ForwardError, Forwarder, QueryFlags};
use crate::metrics::DnsMetrics;
use crate::reply;

/// Bytes of the header of a message.
const HEADER_BYTES: usize = 12;

/// Handles the requests of all clients. Clones share their state.
#[derive(Debug, Clone)]
pub struct Handler {
    pub(crate) state: ClusterState,
    pub(crate) forwarder: Arc<Forwarder>,
    pub(crate) metrics: Arc<DnsMetrics>,
}

#[async_trait]
impl RequestHandler for Handler {
    async fn handle_request<R: ResponseHandler, T: Time>(
        &self,
        request: &Request,
        mut response_handle: R,
    ) -> ResponseInfo {
        let started = Instant::now();
        let mut reply = self.reply(request).await;
        let bytes = reply::fit(&mut reply.message, &request.queries);
        let response = reply::over_udp(&reply.message, &request.queries);
        let sent = response_handle.send_response(response).await;
        self.record(request, &reply, bytes, started);
        sent.unwrap_or_else(|error| {
            tracing::debug!("{}: the reply cannot be sent: {error}", request.src());
            ResponseInfo::from(Header {
                metadata: request.metadata,
                counts: HeaderCounts::default(),
            })
        })
    }
}

/// The reply to a request, before it is made to fit.
#[derive(Debug)]
struct Reply {
    message: Message,
    source: AnswerSource,
    /// Of the records.
    turn: Option<Turn>,
}

impl Reply {
    fn of(message: Message, source: AnswerSource) -> Self {
        Self {
            message,
            source,
            turn: None,
        }
    }
}

impl Handler {
    /// A handler that knows nothing of the cluster yet. Other names go to `upstreams`.
    pub fn new(options: ResponderOptions, upstreams: Vec<SocketAddr>) -> Self {
        let metrics = Arc::new(DnsMetrics::new(&upstreams));
        Self {
            state: ClusterState::new(options),
            forwarder: Arc::new(Forwarder::new(upstreams, Arc::clone(&metrics))),
            metrics,
        }
    }

    /// Applies changes of the cluster, and returns the time that this took. The next answer has them.
    pub fn apply(&self, batches: Vec<Batch>) -> Duration {
        let began = Instant::now();
        self.state.apply(batches);
        began.elapsed()
    }

    /// The reply to a message, if it has one.
    pub async fn respond(
        &self,
        bytes: Vec<u8>,
        client: SocketAddr,
        protocol: Protocol,
    ) -> Option<Vec<u8>> {
        let header = bytes.first_chunk().copied();
        let Ok(request) = Request::from_bytes(bytes, client, protocol) else {
            return header.and_then(malformed);
        };
        if request.metadata.message_type == MessageType::Response {
            // An answer to a reply could go back and forth without end.
            return None;
        }
        let started = Instant::now();
        let mut reply = self.reply(&request).await;
        let bytes = match protocol {
            Protocol::Udp => reply::encode_over_udp(&mut reply.message, &request.queries),
            _ => reply::encode_over_tcp(&mut reply.message),
        };
        self.record(&request, &reply, bytes.len(), started);
        Some(bytes)
    }

    async fn reply(&self, request: &Request) -> Reply {
        let empty = |code| reply::empty(request, code, self.forwarder.has_upstreams());
        let query = match question(request) {
            Ok(query) => query,
            Err(code) => return Reply::of(empty(code), AnswerSource::None),
        };
        let (client, most_bytes) = (request.src().ip(), reply::most_bytes(request));
        let answer = self
            .state
            .ask(query, client, transport(request), most_bytes);
        match answer {
            ClusterAnswer::Answer(mut answer) => {
                let (alias, turn) = (answer.alias.take(), answer.turn.take());
                let message = reply::authoritative(empty(ResponseCode::NoError), *answer);
                let reply = Reply {
                    turn,
                    ..Reply::of(message, AnswerSource::Cluster)
                };
                match alias {
                    Some(alias) => self.follow(request, query, alias, reply).await,
                    None => reply,
                }
            }
            ClusterAnswer::NotRead => Reply::of(empty(ResponseCode::ServFail), AnswerSource::None),
            ClusterAnswer::NotOurs => match self.ask_upstream(request, query).await {
                Ok(answer) => {
                    let message = reply::forwarded(empty(ResponseCode::NoError), answer);
                    Reply::of(message, AnswerSource::Upstream)
                }
                Err(error) => {
                    let code = match error {
                        ForwardError::NoUpstream => ResponseCode::Refused,
                        ForwardError::Limit | ForwardError::Failed => ResponseCode::ServFail,
                    };
                    Reply::of(empty(code), error.source())
                }
            },
        }
    }

    /// Adds the records of an alias outside of the cluster, if there is an upstream server.
    async fn follow(
        &self,
        request: &Request,
        query: &Query,
        alias: Name,
        mut reply: Reply,
    ) -> Reply {
        let query = Query::query(alias, query.query_type());
        let message = &mut reply.message;
        reply.source = match self.ask_upstream(request, &query).await {
            Ok(answer) => {
                message.metadata.response_code = answer.metadata.response_code;
                message.metadata.truncation = answer.metadata.truncation;
                message.add_answers(answer.answers);
                message.add_authorities(answer.authorities);
                AnswerSource::Upstream
            }
            Err(ForwardError::NoUpstream) => AnswerSource::Cluster,
            Err(error) => {
                message.metadata.response_code = ResponseCode::ServFail;
                error.source()
            }
        };
        reply
    }

    async fn ask_upstream(
        &self,
        request: &Request,
        query: &Query,
    ) -> Result<Message, ForwardError> {
        let client = request.src().ip();
        let flags = QueryFlags {
            dnssec_ok: request.edns.as_ref().map(|edns| edns.flags().dnssec_ok),
            authentic_data: request.metadata.authentic_data,
            checking_disabled: request.metadata.checking_disabled,
        };
        self.forwarder
            .ask(query, flags, transport(request), client)
            .await
    }

    fn record(&self, request: &Request, reply: &Reply, reply_bytes: usize, started: Instant) {
        let transport = transport(request);
        if let Some(turn) = &reply.turn
            && transport == DnsTransport::Udp
            && reply.message.metadata.truncation
        {
            self.state.truncated(turn);
        }
        let query = request.queries.queries().first();
        self.metrics.answered(&AnsweredRequest {
            client: request.src().ip(),
            transport,
            record_type: query.map(LowerQuery::query_type),
            is_dnssec: is_dnssec(request),
            request_bytes: request.as_slice().len(),
            reply_bytes,
            code: reply.message.metadata.response_code,
            source: reply.source,
            took: started.elapsed(),
        });
    }
}

fn is_dnssec(request: &Request) -> bool {
    let edns = request.edns.as_ref();
    edns.is_some_and(|edns| edns.flags().dnssec_ok)
}

/// The question of a request, or why it has no answer.
fn question(request: &Request) -> Result<&Query, ResponseCode> {
    if request.version() > 0 {
        return Err(ResponseCode::BADVERS);
    }
    if request.metadata.op_code != OpCode::Query {
        return Err(ResponseCode::NotImp);
    }
    let [query] = request.queries.queries() else {
        return Err(ResponseCode::FormErr);
    };
    // A transfer may have several messages, and the forwarder takes one.
    let is_transfer = matches!(query.query_type(), RecordType::AXFR | RecordType::IXFR);
    if is_transfer || query.query_class() != DNSClass::IN {
        return Err(ResponseCode::Refused);
    }
    Ok(query.original())
}

/// The reply to a malformed request with this header: its id and the code FORMERR; `None` if it is a
/// reply itself.
fn malformed(header: [u8; HEADER_BYTES]) -> Option<Vec<u8>> {
    let [first, second, flags, ..] = header;
    let is_reply = flags & 0x80 != 0;
    let mut reply = vec![0; HEADER_BYTES];
    reply.splice(..4, [first, second, 0x80 | (flags & 0x79), 1]);
    (!is_reply).then_some(reply)
}
