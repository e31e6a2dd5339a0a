//! Long answers, wrong packets, and many connections.

use std::io::Read as _;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use hickory_proto::op::{Message, MessageType, OpCode, Query, ResponseCode};
use hickory_proto::rr::{DNSClass, RecordType};

use crate::client::{
    CART, N1, answers, connect, datagram, over_tcp, over_udp, query, receive, send, udp_from,
    whole, with_size,
};
use crate::program::Program;

const ONE: &[(&str, &str)] = &[("10.244.1.10", "n1")];

#[test]
fn an_answer_that_is_too_long_for_udp_is_truncated_and_whole_over_tcp() {
    let addresses: Vec<String> = (0..200)
        .map(|number| format!("10.244.1.{number}"))
        .collect();
    let endpoints: Vec<(&str, &str)> = addresses.iter().map(|address| (&**address, "n1")).collect();
    let program = Program::with(&endpoints, &[]);
    let question = query(CART, RecordType::A);
    for (question, most) in [
        (question.clone(), 512),
        (with_size(question.clone(), 4_096), 1_232),
        (with_size(question.clone(), 800), 800),
    ] {
        let bytes = datagram(N1, program.address, &question.to_vec().unwrap());
        assert!(
            bytes.len() <= most && bytes.len() > most - 60,
            "{}",
            bytes.len()
        );
        let answer = whole(&bytes);
        assert!(answer.metadata.truncation && answer.answers.len() > 20);
        assert_eq!(answer.edns.is_some(), question.edns.is_some());
    }
    let answer = over_tcp(N1, program.address, &question);
    assert!(!answer.metadata.truncation);
    assert_eq!(answer.answers.len(), 200);
    // Over TCP, too, the answer begins with another endpoint each time.
    let again = over_tcp(N1, program.address, &question);
    assert_ne!(answer.answers[0], again.answers[0]);
    assert_eq!(answers(&answer), answers(&again));
}

#[test]
fn requests_that_cannot_be_answered_get_a_code() {
    let program = Program::with(ONE, &[]);
    let mut update = query(CART, RecordType::A);
    update.metadata.op_code = OpCode::Notify;
    let mut two = query(CART, RecordType::A);
    two.add_query(two.queries[0].clone());
    let mut chaos = query(CART, RecordType::A);
    let mut question = Query::query(chaos.queries[0].name().clone(), RecordType::TXT);
    question.set_query_class(DNSClass::CH);
    chaos.queries = vec![question];
    let mut newer = with_size(query(CART, RecordType::A), 1_232);
    newer.edns.as_mut().unwrap().set_version(1);
    for (request, code) in [
        (update, ResponseCode::NotImp),
        (two, ResponseCode::FormErr),
        (chaos, ResponseCode::Refused),
        (newer, ResponseCode::BADVERS),
    ] {
        for answer in [
            datagram(N1, program.address, &request.to_vec().unwrap()),
            over_tcp(N1, program.address, &request).to_vec().unwrap(),
        ] {
            let answer = Message::from_vec(&answer).unwrap();
            // 16 means BADVERS in a reply to a request with EDNS, and BADSIG in another.
            let found = u16::from(answer.metadata.response_code);
            assert_eq!(found, u16::from(code));
            assert_eq!(answer.answers.len(), 0);
        }
    }
}

/// A header that promises a question, and random bytes instead of it.
fn garbage(seed: u8) -> Vec<u8> {
    let mut bytes = vec![seed, 7, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    let mut state = u32::from(seed) + 1;
    bytes.extend((0..seed % 40).map(|_| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state.to_be_bytes()[0] | 0x40
    }));
    bytes
}

#[test]
fn wrong_packets_are_refused_or_dropped_and_the_next_query_is_answered() {
    let program = Program::with(ONE, &[]);
    let socket = udp_from(N1, program.address);
    let mut response = query(CART, RecordType::A);
    response.metadata.message_type = MessageType::Response;
    let response = response.to_vec().unwrap();
    // As many as the receive buffer of a slow server holds.
    for seed in 0..60 {
        socket.send(&garbage(seed)).unwrap();
        socket.send(&[seed, 1, 2]).unwrap();
        socket.send(&response).unwrap();
    }
    let refused = Message::from_vec(&datagram(N1, program.address, &garbage(1))).unwrap();
    assert_eq!(refused.metadata.response_code, ResponseCode::FormErr);

    let mut stream = connect(N1, program.address);
    send(&mut stream, &garbage(1));
    let refused = receive(&mut stream);
    assert_eq!(refused.metadata.response_code, ResponseCode::FormErr);
    assert_eq!(refused.metadata.message_type, MessageType::Response);
    send(&mut stream, &response);
    send(&mut stream, &[1, 2, 3]);
    // Neither of them was answered, so the next message is this answer.
    let question = query(CART, RecordType::A);
    send(&mut stream, &question.to_vec().unwrap());
    assert_eq!(receive(&mut stream).metadata.id, question.metadata.id);
    let answer = over_udp(N1, program.address, &question);
    assert_eq!(answers(&answer), ["10.244.1.10"]);
}

/// Whether the server closes the connection at once.
fn is_refused(server: SocketAddr) -> bool {
    let mut stream = connect(N1, server);
    stream
        .set_read_timeout(Some(Duration::from_millis(500)))
        .unwrap();
    // The end, or a reset, but no timeout.
    match stream.read(&mut [0]) {
        Ok(count) => count == 0,
        Err(error) => error.kind() == std::io::ErrorKind::ConnectionReset,
    }
}

#[test]
fn connections_are_limited_and_closed_when_idle() {
    let program = Program::with(ONE, &[]);
    let mut open: Vec<_> = (0..256).map(|_| connect(N1, program.address)).collect();
    let opened = Instant::now();
    assert!(is_refused(program.address));
    let question = query(CART, RecordType::A);
    let last = open.last_mut().unwrap();
    send(last, &question.to_vec().unwrap());
    assert_eq!(answers(&receive(last)), ["10.244.1.10"]);
    assert_eq!(
        answers(&over_udp(N1, program.address, &question)),
        ["10.244.1.10"]
    );
    for stream in &mut open {
        assert_eq!(stream.read(&mut [0]).unwrap_or_default(), 0);
    }
    let idle = opened.elapsed();
    assert!(idle >= Duration::from_secs(8), "closed after {idle:?}");
    let answer = over_tcp(N1, program.address, &question);
    assert_eq!(answers(&answer), ["10.244.1.10"]);
}
