//! Builds replies that fit the client's message size.

use std::iter::{Empty, empty as no_records};
use std::slice::Iter;

use dns::{DnsAnswer, DnsTransport};
use hickory_proto::op::{Edns, Header, Message, Metadata, ResponseCode};
use hickory_proto::rr::{RData, Record};
use hickory_proto::serialize::binary::{BinDecodable as _, BinDecoder, BinEncoder};
use hickory_server::server::Request;
use hickory_server::zone_handler::{MessageResponse, MessageResponseBuilder, Queries};

use crate::exchange::transport;

/// A reply as hickory's UDP server encodes it.
pub(crate) type UdpReply<'a> = MessageResponse<
    'a,
    'a,
    Iter<'a, Record>,
    Iter<'a, Record>,
    Empty<&'a Record>,
    Iter<'a, Record>,
>;

/// The longest UDP message, which passes nearly every network without fragments.
pub(crate) const MOST_UDP_BYTES: u16 = 1_232;

/// What every client takes over UDP (RFC 1035, 4.2.1).
const LEAST_UDP_BYTES: u16 = 512;

/// The longest TCP message: its length has two bytes.
const MOST_TCP_BYTES: usize = 65_535;

/// The shortest record: the root is its name, and it has no data.
const LEAST_RECORD_BYTES: usize = 11;

/// The longest reply that the client takes, in bytes.
pub(crate) fn most_bytes(request: &Request) -> u16 {
    match transport(request) {
        DnsTransport::Udp => (request.edns.as_ref()).map_or(LEAST_UDP_BYTES, |edns| {
            edns.max_payload().clamp(LEAST_UDP_BYTES, MOST_UDP_BYTES)
        }),
        DnsTransport::Tcp => u16::MAX,
    }
}

/// A reply without records.
pub(crate) fn empty(request: &Request, code: ResponseCode, is_recursive: bool) -> Message {
    let mut message = Message::response(request.metadata.id, request.metadata.op_code);
    message.metadata = Metadata::response_from_request(&request.metadata);
    message.metadata.response_code = code;
    message.metadata.recursion_available = is_recursive;
    let queries = request.queries.queries().iter();
    message.add_queries(queries.map(|query| query.original().clone()));
    message.edns = request.edns.as_ref().map(|asked| {
        let mut edns = Edns::new();
        edns.set_max_payload(asked.max_payload().min(MOST_UDP_BYTES));
        edns.set_dnssec_ok(asked.flags().dnssec_ok);
        edns
    });
    message
}

/// Adds an authoritative answer.
pub(crate) fn authoritative(mut message: Message, answer: DnsAnswer) -> Message {
    message.metadata.authoritative = true;
    message.metadata.truncation = answer.is_partial;
    message.metadata.response_code = answer.code;
    message.add_answers(answer.records);
    message.add_authorities(answer.soa);
    message.add_additionals(answer.additionals);
    message
}

/// Adds the sections of the answer of an upstream server.
pub(crate) fn forwarded(mut message: Message, answer: Message) -> Message {
    message.metadata.response_code = answer.metadata.response_code;
    message.metadata.truncation = answer.metadata.truncation;
    message.metadata.authentic_data = answer.metadata.authentic_data;
    message.add_answers(answer.answers);
    message.add_authorities(answer.authorities);
    message.add_additionals(answer.additionals);
    message
}

/// The bytes of a reply over TCP: SERVFAIL if it cannot be encoded.
pub(crate) fn encode_over_tcp(message: &mut Message) -> Vec<u8> {
    let bytes_of = |message: &Message| message.to_vec().ok();
    encode(message, MOST_TCP_BYTES, bytes_of)
}

/// The bytes of a reply over UDP, as hickory's server sends them: SERVFAIL if the questions alone are too long.
pub(crate) fn encode_over_udp(message: &mut Message, queries: &Queries) -> Vec<u8> {
    let most = most_udp_bytes(message);
    encode(message, most, |message| udp_bytes(message, queries))
}

fn encode(
    message: &mut Message,
    most: usize,
    bytes_of: impl Fn(&Message) -> Option<Vec<u8>>,
) -> Vec<u8> {
    let bytes = fitting_bytes(message, most, bytes_of);
    let bytes = bytes.filter(|bytes| bytes.len() <= most);
    bytes.unwrap_or_else(|| {
        tracing::debug!("a reply cannot be encoded");
        fail(message)
    })
}

/// Leaves the header alone, with SERVFAIL, and returns its bytes.
fn fail(message: &mut Message) -> Vec<u8> {
    let metadata = message.metadata;
    *message = Message::response(metadata.id, metadata.op_code);
    message.metadata = metadata;
    message.metadata.response_code = ResponseCode::ServFail;
    message.to_vec().unwrap_or_default()
}

/// What the client takes in a message over UDP.
fn most_udp_bytes(message: &Message) -> usize {
    usize::from(
        message
            .edns
            .as_ref()
            .map_or(LEAST_UDP_BYTES, Edns::max_payload),
    )
}

/// The reply to a request with these questions.
pub(crate) fn over_udp<'a>(message: &'a Message, queries: &'a Queries) -> UdpReply<'a> {
    MessageResponseBuilder::new(queries, message.edns.as_ref()).build(
        message.metadata,
        &message.answers,
        &message.authorities,
        no_records(),
        &message.additionals,
    )
}

/// The bytes over UDP; `None` if they cannot be encoded. hickory repeats the questions as they came, and does not compress
/// the first of the names that are equal to the question's, so `Message` would have other bytes.
fn udp_bytes(message: &Message, queries: &Queries) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(512);
    let mut encoder = BinEncoder::new(&mut bytes);
    let written = over_udp(message, queries).destructive_emit(&mut encoder);
    written.is_ok().then_some(bytes)
}

/// Makes the reply fit the client over UDP, and returns its size.
pub(crate) fn fit(message: &mut Message, queries: &Queries) -> usize {
    let most = most_udp_bytes(message);
    let bytes = fitting_bytes(message, most, |message| udp_bytes(message, queries));
    bytes.map_or(usize::MAX, |bytes| bytes.len())
}

/// Leaves out what does not fit: first the additional records, which clients can ask for, then
/// answers, which truncates the message. Returns the bytes, if it can be encoded.
///
/// Hickory must have nothing to leave out, because it would leave bytes after the last record. It
/// needs room for a whole name before it writes a reference instead.
fn fitting_bytes(
    message: &mut Message,
    most: usize,
    bytes_of: impl Fn(&Message) -> Option<Vec<u8>>,
) -> Option<Vec<u8>> {
    let sections = [&message.answers, &message.authorities, &message.additionals];
    let of_names = sections.into_iter().flatten().map(length_of_names).max();
    let most = most.saturating_sub(of_names.unwrap_or(0));
    let most_records = most / LEAST_RECORD_BYTES;
    let whole = |message: &Message| {
        let may_fit = records(message) <= most_records;
        let bytes = may_fit.then(|| bytes_of(message)).flatten()?;
        let fits = bytes.len() <= most && has_all_records(&bytes, message);
        fits.then_some(bytes)
    };
    if let Some(bytes) = whole(message) {
        return Some(bytes);
    }
    message.additionals.clear();
    if let Some(bytes) = whole(message) {
        return Some(bytes);
    }
    message.metadata.truncation = true;
    message.authorities.clear();
    let mut answers = std::mem::take(&mut message.answers);
    let (mut fitting, mut beyond) = (0, answers.len().min(most_records + 1));
    while fitting + 1 < beyond {
        let middle = fitting.midpoint(beyond);
        message.answers = answers.iter().take(middle).cloned().collect();
        if whole(message).is_some() {
            fitting = middle;
        } else {
            beyond = middle;
        }
    }
    answers.truncate(fitting);
    message.answers = answers;
    bytes_of(message)
}

/// The records of all sections.
fn records(message: &Message) -> usize {
    message.answers.len() + message.authorities.len() + message.additionals.len()
}

/// Whether the header of the encoded message counts all its records.
fn has_all_records(bytes: &[u8], message: &Message) -> bool {
    Header::read(&mut BinDecoder::new(bytes)).is_ok_and(|Header { counts, .. }| {
        let sections = [counts.answers, counts.authorities, counts.additionals];
        let counted: usize = sections.map(usize::from).iter().sum();
        counted == records(message) + usize::from(message.edns.is_some())
    })
}

/// The bytes that references may save.
fn length_of_names(record: &Record) -> usize {
    let target = match &record.data {
        RData::CNAME(name) => name.len(),
        RData::PTR(name) => name.len(),
        RData::NS(name) => name.len(),
        RData::MX(exchange) => exchange.exchange.len(),
        RData::SOA(zone) => zone.mname.len() + zone.rname.len(),
        _ => 0,
    };
    record.name.len() + target
}

#[cfg(test)]
mod tests {
    use hickory_proto::op::{OpCode, Query};
    use hickory_proto::rr::rdata::NS;
    use hickory_proto::rr::{Name, RecordType};

    use super::*;

    fn cart() -> Name {
        Name::from_ascii("cart.shop.svc.cluster.local.").unwrap()
    }

    fn record(number: u8) -> Record {
        let data = RData::A(std::net::Ipv4Addr::new(10, 244, 0, number).into());
        Record::from_rdata(cart(), 5, data)
    }

    fn message(answers: u8, additionals: u8, edns: Option<u16>) -> Message {
        let mut message = Message::response(7, OpCode::Query);
        message.add_query(Query::query(cart(), RecordType::A));
        message.add_answers((0..answers).map(record));
        message.add_additionals((0..additionals).map(record));
        message.edns = edns.map(|size| {
            let mut edns = Edns::new();
            edns.set_max_payload(size);
            edns
        });
        message
    }

    fn queries_of(message: &Message) -> Queries {
        let request = message.to_vec().unwrap();
        let mut question = BinDecoder::new(&request[12..]);
        Queries::read(&mut question, 1).unwrap()
    }

    #[test]
    fn what_does_not_fit_is_left_out_and_the_client_learns_it() {
        for (answers, additionals, edns, expected) in [
            (3, 3, None, (3, 3, false)),
            // 512 bytes are 45 of the header and the question, a record of 43, 24 records of 16, and
            // room for a name.
            (25, 0, None, (25, 0, false)),
            (20, 20, None, (20, 0, false)),
            (26, 0, None, (25, 0, true)),
            (200, 200, Some(1_232), (70, 0, true)),
        ] {
            let mut message = message(answers, additionals, edns);
            let queries = queries_of(&message);
            let size = fit(&mut message, &queries);
            let found = (
                message.answers.len(),
                message.additionals.len(),
                message.metadata.truncation,
            );
            assert_eq!(found, expected);
            let most = usize::from(edns.unwrap_or(512));
            assert!(message.to_vec().unwrap().len() <= size && size <= most);
        }
    }

    #[test]
    fn a_partial_answer_is_truncated_although_it_fits() {
        for is_partial in [false, true] {
            let answer = DnsAnswer {
                code: ResponseCode::NoError,
                records: vec![record(1)],
                soa: None,
                additionals: Vec::new(),
                is_partial,
                alias: None,
                turn: None,
            };
            let mut reply = authoritative(message(0, 0, None), answer);
            let queries = queries_of(&reply);
            fit(&mut reply, &queries);
            assert_eq!(reply.answers.len(), 1);
            assert_eq!(reply.metadata.truncation, is_partial);
        }
    }

    #[test]
    fn over_tcp_too_a_message_ends_with_its_last_record() {
        for edns in [None, Some(1_232)] {
            let mut message = message(0, 0, edns);
            message.add_answers(std::iter::repeat_n(record(7), 3_000));
            let bytes = encode_over_tcp(&mut message);
            assert!((65_000..=65_535).contains(&bytes.len()), "{}", bytes.len());
            let mut decoder = BinDecoder::new(&bytes);
            let read = Message::read(&mut decoder).unwrap();
            assert!(decoder.is_empty(), "{} bytes follow", decoder.len());
            assert!(read.metadata.truncation);
            assert_eq!(read.edns.is_some(), edns.is_some());
            assert_eq!(read.answers.len(), message.answers.len());
        }
    }

    #[test]
    fn hickory_has_nothing_to_leave_out_whatever_the_client_takes() {
        let owner = Name::from_ascii("example.com.").unwrap();
        let record = |number: u8| {
            let server = format!("ns{number}.servers-of-a-provider-with-a-long-name.example.net.");
            let data = RData::NS(NS(Name::from_ascii(server).unwrap()));
            Record::from_rdata(owner.clone(), 300, data)
        };
        for most in 512..800 {
            let mut message = message(0, 0, Some(most));
            message.add_answers((10..60).map(record));
            let queries = queries_of(&message);
            fit(&mut message, &queries);
            let mut bytes = Vec::new();
            let mut encoder = BinEncoder::new(&mut bytes);
            encoder.set_max_size(most);
            let sent = over_udp(&message, &queries).destructive_emit(&mut encoder);
            let counts = sent.unwrap().counts();
            assert_eq!(usize::from(counts.answers), message.answers.len(), "{most}");
            assert_eq!(counts.additionals, 1, "{most}");
        }
    }
}
