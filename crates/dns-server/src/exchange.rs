//! A request and its reply, as the metrics see them.

use std::net::IpAddr;
use std::time::Duration;

use dns::DnsTransport;
use hickory_proto::op::ResponseCode;
use hickory_proto::rr::RecordType;
use hickory_server::net::xfer::Protocol;
use hickory_server::server::Request;

/// A request that has its reply.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AnsweredRequest {
    pub(crate) client: IpAddr,
    pub(crate) transport: DnsTransport,
    /// `None` without a question.
    pub(crate) record_type: Option<RecordType>,
    /// Whether the client asks for DNSSEC records.
    pub(crate) is_dnssec: bool,
    pub(crate) request_bytes: usize,
    pub(crate) reply_bytes: usize,
    pub(crate) code: ResponseCode,
    pub(crate) source: AnswerSource,
    pub(crate) took: Duration,
}

/// Where an answer comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AnswerSource {
    /// The state of the cluster alone.
    Cluster,
    /// An upstream server was asked, whether it answered or not.
    Upstream,
    /// There is no answer: the request was refused, or the cluster is not read yet.
    None,
}

/// Why an upstream server does not answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UpstreamFailure {
    /// The question could not be sent, or the connection ended.
    Unreachable,
    Timeout,
}

/// How a request came.
pub(crate) fn transport(request: &Request) -> DnsTransport {
    match request.protocol() {
        Protocol::Udp => DnsTransport::Udp,
        _ => DnsTransport::Tcp,
    }
}

impl UpstreamFailure {
    pub(crate) const ALL: [Self; 2] = [Self::Unreachable, Self::Timeout];

    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Unreachable => "unreachable",
            Self::Timeout => "timeout",
        }
    }
}

impl AnswerSource {
    pub(crate) const ALL: [Self; 3] = [Self::Cluster, Self::Upstream, Self::None];

    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Cluster => "cluster",
            Self::Upstream => "upstream",
            Self::None => "none",
        }
    }
}
