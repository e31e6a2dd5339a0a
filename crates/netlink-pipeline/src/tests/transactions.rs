//! Transactions: all requests or none.

use netlink_packet_core::NLM_F_ACK;

use super::kernel::{Act, Kernel, error};
use crate::message::Messages;
use crate::{Conversation as _, Error, Next, Request, Sequence, Transaction, Writer};

const NFTABLES: u8 = 10;
const GOOD: u16 = 0x0a0c;
const BAD: u16 = 0x0a0e;

fn transaction(kinds: &[u16]) -> Transaction {
    let mut transaction = Transaction::new(NFTABLES).unwrap();
    for kind in kinds {
        transaction
            .push(Request::new(*kind, 0), |out| out.bytes(&[2, 0, 0, 0]))
            .unwrap();
    }
    transaction
}

#[test]
fn requests_stand_in_a_frame_and_only_the_last_one_asks_for_an_acknowledgement() {
    let mut transaction = transaction(&[GOOD, BAD]);
    assert_eq!(transaction.count(), 2);
    let mut sequence = Sequence::new();
    let Next::Send(bytes) = transaction.next(&mut sequence) else {
        panic!("nothing is sent");
    };
    let messages: Vec<_> = Messages::new(bytes).map(Result::unwrap).collect();
    let kinds: Vec<u16> = messages.iter().map(|message| message.kind).collect();
    assert_eq!(kinds, [0x10, GOOD, BAD, 0x11]);
    let asks: Vec<bool> = messages
        .iter()
        .map(|message| message.flags & NLM_F_ACK != 0)
        .collect();
    assert_eq!(asks, [false, false, true, false]);
    assert_eq!(messages[0].payload, [0, 0, 0, NFTABLES]);
    assert_eq!(messages[3].payload, [0, 0, 0, NFTABLES]);
}

#[test]
fn it_ends_with_the_acknowledgement_of_the_last_request() {
    let mut kernel = Kernel::new(usize::MAX);
    kernel.converse(&mut transaction(&[GOOD, GOOD])).unwrap();
    assert_eq!(kernel.worked, [0x10, GOOD, GOOD, 0x11]);
    assert_eq!(kernel.most_queued, 1);
}

#[test]
fn an_empty_transaction_is_not_sent() {
    let mut kernel = Kernel::new(usize::MAX);
    kernel.converse(&mut transaction(&[])).unwrap();
    assert_eq!(kernel.worked, [0; 0]);
}

#[test]
fn a_request_beyond_the_send_buffer_is_refused_and_the_others_are_sent() {
    let mut transaction = Transaction::new(NFTABLES).unwrap();
    let mut push = |bytes| {
        transaction.push(Request::new(GOOD, 0), |out: &mut Writer<'_>| {
            out.bytes(&vec![0; bytes]);
        })
    };
    push(100_000).unwrap();
    let refused = push(100_000).unwrap_err().to_string();
    assert_eq!(refused, "the requests are too long for one datagram");
    push(90_000).unwrap();
    assert_eq!(transaction.count(), 2);
    let mut sequence = Sequence::new();
    let Next::Send(bytes) = transaction.next(&mut sequence) else {
        panic!("nothing is sent");
    };
    assert!(bytes.len() < 212_992 - 32);
    assert_eq!(Messages::new(bytes).map(Result::unwrap).count(), 4);
}

#[test]
fn one_refusal_is_the_refusal_of_all() {
    let mut kernel = Kernel::new(usize::MAX);
    kernel.acts.insert(BAD, Act::Fail(2));
    for kinds in [&[GOOD, BAD][..], &[BAD, GOOD], &[GOOD, BAD, GOOD]] {
        let outcome = kernel.converse(&mut transaction(kinds));
        assert!(matches!(outcome, Err(Error::Refused(nack)) if nack.errno == 2));
    }
}

#[test]
fn a_refusal_of_the_frame_is_heard_and_answers_to_others_are_not() {
    let mut transaction = transaction(&[GOOD]);
    let mut sequence = Sequence::new();
    sequence.reserve(40);
    assert!(matches!(transaction.next(&mut sequence), Next::Send(_)));
    transaction.received(&error(1, 40)).unwrap();
    assert_eq!(transaction.next(&mut sequence), Next::Receive);
    let refused = transaction.received(&error(1, 41));
    assert!(matches!(refused, Err(Error::Refused(nack)) if nack.errno == 1));
}
