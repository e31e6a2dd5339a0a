//! Questions of DNS clients and the records in the replies.

use std::io::{Error, Result};

use hickory_proto::op::{Message, MessageType, OpCode, Query, ResponseCode};
use hickory_proto::rr::{Name, Record, RecordType};

/// Returns a question for the A records of `name`.
pub(crate) fn question(id: u16, name: &str) -> Result<Vec<u8>> {
    let name = Name::from_ascii(name).map_err(Error::other)?;
    let mut message = Message::new(id, MessageType::Query, OpCode::Query);
    message.metadata.recursion_desired = true;
    message.add_query(Query::query(name, RecordType::A));
    message.to_vec().map_err(Error::other)
}

/// Returns the records in a reply to the question `id`; fails if there is none.
pub(crate) fn records(reply: &[u8], id: u16) -> Result<Vec<Record>> {
    let reply = Message::from_vec(reply).map_err(Error::other)?;
    let metadata = reply.metadata;
    if metadata.id != id || metadata.message_type != MessageType::Response {
        return Err(Error::other("this is no reply to the question"));
    }
    if metadata.response_code != ResponseCode::NoError || reply.answers.is_empty() {
        let code = metadata.response_code;
        return Err(Error::other(format!("a reply without a record, {code}")));
    }
    Ok(reply.answers)
}

#[cfg(test)]
mod tests {
    use hickory_proto::rr::{RData, rdata};

    use super::*;

    fn reply(id: u16, code: ResponseCode, records: usize) -> Vec<u8> {
        let mut message = Message::response(id, OpCode::Query);
        message.metadata.response_code = code;
        let name = Name::from_ascii("a.example.").unwrap();
        let address = RData::A(rdata::A::new(192, 0, 2, 1));
        message.add_answers(vec![Record::from_rdata(name, 300, address); records]);
        message.to_vec().unwrap()
    }

    #[test]
    fn only_a_reply_to_the_question_with_a_record_is_an_answer() {
        let ttl = |reply: &[u8]| records(reply, 7).ok().map(|records| records[0].ttl);
        assert_eq!(ttl(&reply(7, ResponseCode::NoError, 2)), Some(300));
        assert_eq!(ttl(&reply(8, ResponseCode::NoError, 2)), None);
        assert_eq!(ttl(&reply(7, ResponseCode::ServFail, 2)), None);
        assert_eq!(ttl(&reply(7, ResponseCode::NoError, 0)), None);
        assert_eq!(ttl(&question(7, "a.example").unwrap()), None);
        assert_eq!(ttl(b"\0\x07"), None);
    }
}
