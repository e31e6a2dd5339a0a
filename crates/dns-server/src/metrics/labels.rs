//! The values of labels: those of `CoreDNS`, in closed lists.

use std::net::{IpAddr, SocketAddr};

use dns::DnsTransport;
use hickory_proto::op::ResponseCode;
use hickory_proto::rr::RecordType;
use prometheus_client::encoding::EncodeLabelSet;

use crate::client_limit::LimitReached;
use crate::exchange::{AnswerSource, UpstreamFailure};

/// The value for all that is not in a list.
const OTHER: &str = "other";

/// IPv4 and IPv6.
const FAMILIES: [&str; 2] = ["1", "2"];

/// The record types that have a value of their own, the most frequent first.
const TYPES: [(u16, &str); 18] = [
    (1, "A"),
    (28, "AAAA"),
    (33, "SRV"),
    (12, "PTR"),
    (5, "CNAME"),
    (16, "TXT"),
    (6, "SOA"),
    (2, "NS"),
    (15, "MX"),
    (65, "HTTPS"),
    (43, "DS"),
    (46, "RRSIG"),
    (47, "NSEC"),
    (48, "DNSKEY"),
    (50, "NSEC3"),
    (251, "IXFR"),
    (252, "AXFR"),
    (255, "ANY"),
];

const CODES: [(u16, &str); 12] = [
    (0, "NOERROR"),
    (3, "NXDOMAIN"),
    (2, "SERVFAIL"),
    (5, "REFUSED"),
    (1, "FORMERR"),
    (4, "NOTIMP"),
    (6, "YXDOMAIN"),
    (7, "YXRRSET"),
    (8, "NXRRSET"),
    (9, "NOTAUTH"),
    (10, "NOTZONE"),
    (16, "BADVERS"),
];

/// Labels of requests.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct QuestionLabels {
    proto: &'static str,
    family: &'static str,
    r#type: &'static str,
}

impl QuestionLabels {
    pub(super) fn all() -> Vec<Self> {
        let mut all = Vec::new();
        for proto in protocols() {
            for family in FAMILIES {
                all.extend(names(&TYPES).map(|name| Self {
                    proto,
                    family,
                    r#type: name,
                }));
            }
        }
        all
    }

    pub(super) fn position(
        transport: DnsTransport,
        client: IpAddr,
        record_type: Option<RecordType>,
    ) -> usize {
        let family = usize::from(client.to_canonical().is_ipv6());
        let number = record_type.map_or(0, u16::from);
        let of_transport = transport as usize * FAMILIES.len() + family;
        of_transport * (TYPES.len() + 1) + place(&TYPES, number)
    }
}

/// Labels of responses.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct ResponseLabels {
    rcode: &'static str,
    source: &'static str,
}

impl ResponseLabels {
    pub(super) fn all() -> Vec<Self> {
        let of_source = |source: AnswerSource| {
            let source = source.as_str();
            names(&CODES).map(move |rcode| Self { rcode, source })
        };
        AnswerSource::ALL.into_iter().flat_map(of_source).collect()
    }

    pub(super) fn position(code: ResponseCode, source: AnswerSource) -> usize {
        source as usize * (CODES.len() + 1) + place(&CODES, code.into())
    }
}

/// The label of durations.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct AnswerSourceLabel {
    source: &'static str,
}

impl AnswerSourceLabel {
    pub(super) fn all() -> [Self; 3] {
        AnswerSource::ALL.map(|source| Self {
            source: source.as_str(),
        })
    }
}

/// The label of sizes.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct ProtocolLabel {
    proto: &'static str,
}

impl ProtocolLabel {
    pub(super) fn all() -> [Self; 2] {
        protocols().map(|proto| Self { proto })
    }
}

/// The label of what a limit refuses.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct LimitLabel {
    reason: &'static str,
}

impl LimitLabel {
    pub(super) fn all() -> [Self; 2] {
        LimitReached::ALL.map(|limit| Self {
            reason: limit.as_str(),
        })
    }
}

/// Labels of responses of upstream servers.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct UpstreamResponseLabels {
    to: String,
    rcode: &'static str,
}

impl UpstreamResponseLabels {
    pub(super) fn all(upstreams: &[SocketAddr]) -> Vec<Self> {
        let of_upstream = |upstream: &SocketAddr| {
            let to = upstream.to_string();
            names(&CODES).map(move |rcode| Self {
                to: to.clone(),
                rcode,
            })
        };
        upstreams.iter().flat_map(of_upstream).collect()
    }

    /// The position for the upstream server at `upstream` of the list.
    pub(super) fn position(upstream: usize, code: ResponseCode) -> usize {
        upstream * (CODES.len() + 1) + place(&CODES, code.into())
    }
}

/// Labels of upstream servers that do not answer.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct UpstreamFailureLabels {
    to: String,
    reason: &'static str,
}

impl UpstreamFailureLabels {
    pub(super) fn all(upstreams: &[SocketAddr]) -> Vec<Self> {
        let of_upstream = |upstream: &SocketAddr| {
            let to = upstream.to_string();
            UpstreamFailure::ALL.map(|failure| Self {
                to: to.clone(),
                reason: failure.as_str(),
            })
        };
        upstreams.iter().flat_map(of_upstream).collect()
    }

    /// The position for the upstream server at `upstream` of the list.
    pub(super) fn position(upstream: usize, failure: UpstreamFailure) -> usize {
        upstream * UpstreamFailure::ALL.len() + failure as usize
    }
}

/// The label of resources of the API server.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct WatchLabel {
    pub(super) input: &'static str,
}

fn protocols() -> [&'static str; 2] {
    DnsTransport::ALL.map(DnsTransport::as_str)
}

fn names(list: &'static [(u16, &'static str)]) -> impl Iterator<Item = &'static str> {
    list.iter().map(|(_, name)| *name).chain([OTHER])
}

fn place(list: &[(u16, &str)], number: u16) -> usize {
    let place = list.iter().position(|(listed, _)| *listed == number);
    place.unwrap_or(list.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_position_has_the_labels_of_its_values() {
        let all = QuestionLabels::all();
        for (transport, proto) in [(DnsTransport::Udp, "udp"), (DnsTransport::Tcp, "tcp")] {
            for (client, family) in [
                ("10.244.1.7", "1"),
                ("::ffff:10.244.1.7", "1"),
                ("fd00::7", "2"),
            ] {
                for (record_type, name) in [
                    (Some(RecordType::A), "A"),
                    (Some(RecordType::SRV), "SRV"),
                    (Some(RecordType::ANY), "ANY"),
                    (Some(RecordType::CAA), "other"),
                    (Some(RecordType::Unknown(65_280)), "other"),
                    (None, "other"),
                ] {
                    let client = client.parse().unwrap();
                    let position = QuestionLabels::position(transport, client, record_type);
                    let expected = QuestionLabels {
                        proto,
                        family,
                        r#type: name,
                    };
                    assert_eq!(all[position], expected);
                }
            }
        }
        let all = ResponseLabels::all();
        for source in AnswerSource::ALL {
            for (code, rcode) in [
                (ResponseCode::NoError, "NOERROR"),
                (ResponseCode::NXDomain, "NXDOMAIN"),
                (ResponseCode::BADVERS, "BADVERS"),
                (ResponseCode::BADCOOKIE, "other"),
                (ResponseCode::Unknown(4_000), "other"),
            ] {
                let found = &all[ResponseLabels::position(code, source)];
                assert_eq!((found.rcode, found.source), (rcode, source.as_str()));
            }
        }
    }

    #[test]
    fn upstream_servers_have_labels_of_their_own() {
        let upstreams = ["192.0.2.1:53", "[2001:db8::1]:53"];
        let upstreams = upstreams.map(|upstream| upstream.parse().unwrap());
        let responses = UpstreamResponseLabels::all(&upstreams);
        let failures = UpstreamFailureLabels::all(&upstreams);
        for (at, upstream) in upstreams.iter().enumerate() {
            let response = UpstreamResponseLabels::position(at, ResponseCode::ServFail);
            let response = &responses[response];
            let failure = UpstreamFailureLabels::position(at, UpstreamFailure::Timeout);
            let failure = &failures[failure];
            let expected = upstream.to_string();
            assert_eq!((&response.to, response.rcode), (&expected, "SERVFAIL"));
            assert_eq!((&failure.to, failure.reason), (&expected, "timeout"));
        }
    }
}
