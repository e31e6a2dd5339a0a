//! Handles requests: which of them have an answer, and where it comes from.

use std::sync::Arc;

use async_trait::async_trait;
use hickory_proto::op::{Message, MessageType, OpCode, Query, ResponseCode};
use hickory_proto::rr::{DNSClass, Name};
use hickory_server::net::runtime::Time;
use hickory_server::net::xfer::Protocol;
use hickory_server::server::{Request, RequestHandler, ResponseHandler, ResponseInfo};
use hickory_server::zone_handler::MessageResponseBuilder;

use crate::cluster_state::{ClusterState, Knowledge};
use crate::forwarder::{ForwardError, Forwarder, UpstreamTransport};
use crate::reply;

/// Handles the requests of all clients. Clones share their state.
#[derive(Debug, Clone)]
pub(crate) struct Handler {
    pub(crate) state: ClusterState,
    pub(crate) forwarder: Arc<Forwarder>,
}

#[async_trait]
impl RequestHandler for Handler {
    async fn handle_request<R: ResponseHandler, T: Time>(
        &self,
        request: &Request,
        mut response_handle: R,
    ) -> ResponseInfo {
        let mut reply = self.reply(request).await;
        if request.protocol() == Protocol::Udp {
            reply::fit(&mut reply);
        }
        let response = MessageResponseBuilder::new(&request.queries, reply.edns.as_ref()).build(
            reply.metadata,
            &reply.answers,
            &reply.authorities,
            [],
            &reply.additionals,
        );
        let sent = response_handle.send_response(response).await;
        sent.unwrap_or_else(|error| {
            tracing::debug!("{}: the reply cannot be sent: {error}", request.src());
            failed(request)
        })
    }
}

/// What hickory logs about a reply that was not sent.
fn failed(request: &Request) -> ResponseInfo {
    let mut metadata = request.metadata;
    metadata.message_type = MessageType::Response;
    metadata.response_code = ResponseCode::ServFail;
    ResponseInfo::from(hickory_proto::op::Header {
        metadata,
        counts: hickory_proto::op::HeaderCounts::default(),
    })
}

impl Handler {
    async fn reply(&self, request: &Request) -> Message {
        let empty = |code| reply::empty(request, code, self.forwarder.has_upstreams());
        let query = match question(request) {
            Ok(query) => query,
            Err(code) => return empty(code),
        };
        let client = request.src().ip();
        match self.state.ask(query.name(), query.query_type(), client) {
            Knowledge::Answer(mut answer) => {
                let alias = answer.alias.take();
                let reply = reply::authoritative(empty(ResponseCode::NoError), *answer);
                match alias {
                    Some(alias) => self.follow(request, query, alias, reply).await,
                    None => reply,
                }
            }
            Knowledge::NotRead => empty(ResponseCode::ServFail),
            Knowledge::NotOurs => match self.ask_upstream(request, query).await {
                Ok(answer) => reply::forwarded(empty(ResponseCode::NoError), answer),
                Err(ForwardError::NoUpstream) => empty(ResponseCode::Refused),
                Err(ForwardError::Failed) => empty(ResponseCode::ServFail),
            },
        }
    }

    /// Adds the records of an alias outside of the cluster, if there is an upstream server.
    async fn follow(
        &self,
        request: &Request,
        query: &Query,
        alias: Name,
        mut reply: Message,
    ) -> Message {
        let query = Query::query(alias, query.query_type());
        match self.ask_upstream(request, &query).await {
            Ok(answer) => {
                reply.metadata.response_code = answer.metadata.response_code;
                reply.metadata.truncation = answer.metadata.truncation;
                reply.add_answers(answer.answers);
            }
            Err(ForwardError::NoUpstream) => {}
            Err(ForwardError::Failed) => reply.metadata.response_code = ResponseCode::ServFail,
        }
        reply
    }

    async fn ask_upstream(
        &self,
        request: &Request,
        query: &Query,
    ) -> Result<Message, ForwardError> {
        let edns = request.edns.as_ref();
        let is_dnssec = edns.is_some_and(|edns| edns.flags().dnssec_ok);
        let transport = match request.protocol() {
            Protocol::Udp => UpstreamTransport::Udp,
            _ => UpstreamTransport::Tcp,
        };
        self.forwarder.ask(query, is_dnssec, transport).await
    }
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
    if query.query_class() != DNSClass::IN {
        return Err(ResponseCode::Refused);
    }
    Ok(query.original())
}
