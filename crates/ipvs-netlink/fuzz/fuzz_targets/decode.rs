//! Decodes arbitrary bytes: nothing may panic, and decoded commands encode to the same bytes.
//!
//! `cargo +nightly fuzz run decode fuzz/corpus/decode fuzz/seeds/decode -- -max_total_time=600`, in
//! `crates/ipvs-netlink`. The first byte selects the decoder for the rest.
#![no_main]

use netlink_pipeline::{
    Batch, Conversation, Dump, Limits, Messages, Next, Pipeline, Request, Sequence,
};
use ipvs_netlink::{Family, codec, connections};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Some((choice, rest)) = bytes.split_first() else {
        return;
    };
    match choice % 8 {
        0 => drop(codec::decode_service(rest)),
        1 => drop(codec::decode_destination(rest, Family::V4)),
        2 => drop(codec::decode_destination(rest, Family::V6)),
        3 => drop(codec::decode_daemon(rest)),
        4 => drop((codec::decode_timeouts(rest), codec::decode_info(rest))),
        5 => command(rest),
        6 => transport(rest),
        _ => connections::read(rest).for_each(drop),
    }
});

/// A command that can be decoded and encoded again decodes to the same command.
fn command(payload: &[u8]) {
    let Ok(Some(command)) = codec::decode_command(payload) else {
        return;
    };
    let sent = codec::encode(std::slice::from_ref(&command), 0x22, Limits::default(), 1);
    for datagram in sent {
        for message in Messages::new(&datagram) {
            let message = message.expect("we write whole messages");
            let again = codec::decode_command(message.payload);
            assert_eq!(again, Ok(Some(command.clone())));
        }
    }
}

/// Arbitrary replies to a pipeline and to a dump.
fn transport(datagram: &[u8]) {
    let mut batch = Batch::new();
    for kind in 0..4 {
        batch.push(Request::new(kind, 0).with_answer(), &[0; 4]);
    }
    let mut pipeline = Pipeline::new(batch, Limits::default(), 1 << 20, |_, _| Ok(()));
    let sent = pipeline.next(&mut Sequence::new());
    assert!(matches!(sent, Next::Send(_)));
    let _ = pipeline.received(datagram);
    assert_eq!(pipeline.into_results().len(), 4);

    let decode = |_: netlink_pipeline::Message<'_>| Ok(Some(()));
    let Ok(mut dump) = Dump::new(Request::new(0x22, 0), |_| (), 2, decode) else {
        return;
    };
    let sent = dump.next(&mut Sequence::new());
    assert!(matches!(sent, Next::Send(_)));
    let _ = dump.received(datagram);
}
