//! The few parts of a DNS message that a client of a test needs.

/// The bytes before the question.
const HEADER: usize = 12;

/// The type and the class of a question.
const QUESTION_TAIL: usize = 4;

/// Returns a question for the A records of `name`.
pub(super) fn query(id: u16, name: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    // Recursion desired; one question.
    for field in [id, 0x0100, 1, 0, 0, 0] {
        bytes.extend(field.to_be_bytes());
    }
    for label in name.trim_end_matches('.').split('.') {
        // A longer label would be no name: the server answers with an error.
        bytes.push(u8::try_from(label.len()).unwrap_or(u8::MAX));
        bytes.extend(label.as_bytes());
    }
    bytes.push(0);
    // A, IN.
    bytes.extend([0, 1, 0, 1]);
    bytes
}

/// Returns the TTL of the first record of a reply to the query `id`; `None` without a record or with an error.
pub(super) fn first_ttl(reply: &[u8], id: u16) -> Option<u32> {
    let field = |at: usize| Some(u16::from_be_bytes(reply.get(at..at + 2)?.try_into().ok()?));
    let (flags, answers) = (field(2)?, field(6)?);
    let is_reply = field(0)? == id && flags & 0x8000 != 0;
    if !is_reply || flags & 0x000f != 0 || answers == 0 {
        return None;
    }
    let record = end_of_name(reply, HEADER)? + QUESTION_TAIL;
    let ttl = end_of_name(reply, record)? + 4;
    Some(u32::from_be_bytes(
        reply.get(ttl..ttl + 4)?.try_into().ok()?,
    ))
}

/// Returns where the name that begins at `at` ends: after its last label, or after a pointer to another name.
fn end_of_name(reply: &[u8], mut at: usize) -> Option<usize> {
    loop {
        match *reply.get(at)? {
            0 => return Some(at + 1),
            length if length & 0xc0 == 0xc0 => return Some(at + 2),
            length => at += 1 + usize::from(length),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A reply with one A record whose name is a pointer to the question.
    fn reply(flags: u16, answers: u16) -> Vec<u8> {
        let mut bytes = query(7, "a.example.");
        bytes[2..4].copy_from_slice(&flags.to_be_bytes());
        bytes[6..8].copy_from_slice(&answers.to_be_bytes());
        bytes.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 1, 44, 0, 4, 192, 0, 2, 1]);
        bytes
    }

    #[test]
    fn a_query_has_the_labels_of_the_name() {
        let expected =
            b"\x00\x07\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x01a\x07example\x00\x00\x01\x00\x01";
        assert_eq!(query(7, "a.example."), expected);
        assert_eq!(query(7, "a.example"), expected);
    }

    #[test]
    fn the_ttl_is_that_of_the_first_record() {
        assert_eq!(first_ttl(&reply(0x8180, 1), 7), Some(300));
        assert_eq!(first_ttl(&reply(0x8180, 1), 8), None, "another query");
        assert_eq!(first_ttl(&reply(0x8182, 1), 7), None, "SERVFAIL");
        assert_eq!(first_ttl(&reply(0x8180, 0), 7), None, "no record");
        assert_eq!(first_ttl(&reply(0x0100, 1), 7), None, "a query");
        let whole = reply(0x8180, 1);
        let cut = whole.get(..whole.len() - 11).unwrap();
        assert_eq!(first_ttl(cut, 7), None, "cut in the TTL");
    }
}
