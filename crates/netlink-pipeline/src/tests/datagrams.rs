//! Requests in datagrams.

use netlink_packet_core::{NLM_F_ACK, NLM_F_REQUEST};

use crate::{Batch, Datagram, Limits, Messages, Request, Sequence, datagrams};

fn batch(messages: usize, payload: usize) -> Batch {
    let mut batch = Batch::new();
    for _ in 0..messages {
        batch.push(Request::new(7, 0x400), &vec![1; payload]);
    }
    batch
}

#[test]
fn only_the_last_message_of_a_datagram_asks_for_an_acknowledgement() {
    for datagram in datagrams(&mut batch(300, 5), Limits::default(), 10) {
        let messages: Vec<_> = Messages::new(&datagram).map(Result::unwrap).collect();
        let (last, others) = messages.split_last().unwrap();
        assert_eq!(last.flags, 0x400 | NLM_F_REQUEST | NLM_F_ACK);
        assert!(others.iter().all(|m| m.flags == 0x400 | NLM_F_REQUEST));
        assert!(messages.iter().all(|m| m.payload == [1; 5]));
    }
}

#[test]
fn messages_are_numbered_through_all_datagrams() {
    let finished = datagrams(&mut batch(300, 5), Limits::default(), 10);
    let numbers: Vec<_> = finished
        .iter()
        .flat_map(|datagram| Messages::new(datagram))
        .map(|message| message.unwrap().sequence)
        .collect();
    assert_eq!(numbers, (10..310).collect::<Vec<_>>());
}

#[test]
fn a_datagram_closes_at_its_messages_or_its_bytes() {
    let sizes = |messages, payload| -> Vec<usize> {
        datagrams(&mut batch(messages, payload), Limits::default(), 1)
            .iter()
            .map(|datagram| Messages::new(datagram).count())
            .collect()
    };
    assert_eq!(sizes(300, 4), [128, 128, 44]);
    assert_eq!(sizes(5, 40_000), [2, 2, 1]);
    assert_eq!(sizes(0, 0), []);
}

#[test]
fn a_message_that_is_too_long_leaves_no_trace() {
    let mut datagram = Datagram::new(Limits::default(), usize::MAX);
    let request = Request::new(7, 0);
    datagram.push(request, |out| out.bytes(&[1])).unwrap();
    let too_long = datagram.push(request, |out| {
        out.nested(1, |out| out.attribute(2, &vec![0; 70_000]));
    });
    assert!(too_long.is_err());
    let whole = datagram.push(request, |out| out.bytes(&vec![0; 200_000]));
    assert!(whole.is_err());
    assert_eq!(datagram.count(), 1);
    let bytes = datagram.seal(1).to_vec();
    let messages: Vec<_> = Messages::new(&bytes).map(Result::unwrap).collect();
    assert_eq!(messages.len(), 1);
    assert_eq!(messages[0].flags & NLM_F_ACK, NLM_F_ACK);
}

#[test]
fn sequence_numbers_are_never_zero_and_never_wrap_within_a_datagram() {
    let mut sequence = Sequence::new();
    assert_eq!(sequence.reserve(u32::MAX - 5), 1);
    assert_eq!(sequence.reserve(4), u32::MAX - 4);
    assert_eq!(sequence.reserve(4), 1);
    assert_eq!(sequence.reserve(4), 5);
}

#[test]
fn a_cut_message_is_an_error_and_not_a_loop() {
    let whole = super::kernel::reply(7, 0, 1, &[1, 2, 3, 4]);
    for cut in 1..whole.len() {
        let items: Vec<_> = Messages::new(&whole[..cut]).collect();
        assert!(matches!(items[..], [Err(_)]), "{cut}: {items:?}");
    }
    let empty = [0; 64];
    assert!(matches!(Messages::new(&empty).next(), Some(Err(_))));
}
