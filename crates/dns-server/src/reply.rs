//! Builds replies that fit the client's message size.

use std::iter::{Empty, empty as no_records};
use std::slice::Iter;

use dns::DnsAnswer;
use hickory_proto::op::{Edns, Message, Metadata, ResponseCode};
use hickory_proto::rr::{RData, Record};
use hickory_proto::serialize::binary::BinEncoder;
use hickory_server::server::Request;
use hickory_server::zone_handler::{MessageResponse, MessageResponseBuilder, Queries};

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

/// The bytes of a reply. Without records and with SERVFAIL if the records cannot be encoded.
pub(crate) fn encode(message: &mut Message) -> Vec<u8> {
    message.to_vec().unwrap_or_else(|error| {
        tracing::debug!("a reply cannot be encoded: {error}");
        fail(message)
    })
}

/// The bytes of a reply over UDP, as hickory's server sends them: SERVFAIL if the questions alone are too long.
pub(crate) fn encode_over_udp(message: &mut Message, queries: &Queries) -> Vec<u8> {
    fit(message, queries);
    let most = most_udp_bytes(message);
    let bytes = udp_bytes(message, queries).filter(|bytes| bytes.len() <= most);
    bytes.unwrap_or_else(|| fail(message))
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
    usize::from(message.edns.as_ref().map_or(512, Edns::max_payload))
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

/// Leaves out what does not fit: first the additional records, which clients can ask for, then
/// answers, which truncates the message. Returns the size.
///
/// Hickory must have nothing to leave out, because it would leave bytes after the last record. It
/// needs room for a whole name before it writes a reference instead.
pub(crate) fn fit(message: &mut Message, queries: &Queries) -> usize {
    let sections = [&message.answers, &message.authorities, &message.additionals];
    let of_names = sections.into_iter().flatten().map(length_of_names).max();
    let most = most_udp_bytes(message).saturating_sub(of_names.unwrap_or(0));
    let size =
        |message: &Message| udp_bytes(message, queries).map_or(usize::MAX, |bytes| bytes.len());
    let fits = |message: &Message| size(message) <= most;
    let whole = size(message);
    if whole <= most {
        return whole;
    }
    message.additionals.clear();
    let without_additionals = size(message);
    if without_additionals <= most {
        return without_additionals;
    }
    message.metadata.truncation = true;
    message.authorities.clear();
    let mut answers = std::mem::take(&mut message.answers);
    let (mut fitting, mut beyond) = (0, answers.len());
    while fitting + 1 < beyond {
        let middle = fitting.midpoint(beyond);
        message.answers = answers.iter().take(middle).cloned().collect();
        if fits(message) {
            fitting = middle;
        } else {
            beyond = middle;
        }
    }
    answers.truncate(fitting);
    message.answers = answers;
    size(message)
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
    use hickory_proto::serialize::binary::BinDecoder;

    use super::*;

    fn message(answers: u8, additionals: u8, edns: Option<u16>) -> Message {
        let name = Name::from_ascii("cart.shop.svc.cluster.local.").unwrap();
        let mut message = Message::response(7, OpCode::Query);
        message.add_query(Query::query(name.clone(), RecordType::A));
        let record = |number| {
            let data = RData::A(std::net::Ipv4Addr::new(10, 244, 0, number).into());
            Record::from_rdata(name.clone(), 5, data)
        };
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
