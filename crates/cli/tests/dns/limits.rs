//! Long answers, wrong packets, and many connections.

use std::io::Read as _;
use std::net::{Ipv4Addr, SocketAddr, TcpStream, UdpSocket};
use std::time::{Duration, Instant};

use hickory_proto::op::{Message, MessageType, OpCode, Query, ResponseCode};
use hickory_proto::rr::{DNSClass, RecordType};

use crate::client::{
    CART, N1, N2, answers, connect, datagram, over_tcp, over_udp, query, receive, send, udp_from,
    whole, with_size,
};
use crate::program::{PATIENCE, Program, cluster, write_endpoints};
use crate::scrape::{METRICS, Scrape};

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

/// A client without EDNS asks again over TCP, and gets the turn of the truncated reply.
#[test]
fn a_level_that_does_not_fit_in_a_datagram_keeps_its_share() {
    let folder = cluster();
    let weighted = "
{apiVersion: v1, kind: Service, metadata: {name: cart, namespace: shop, annotations: {topology.ipvs-topo.io/weights: 'zone=80,*=20'}},
  spec: {clusterIP: None, ports: [{name: http, port: 80}]}}
";
    let text = std::fs::read_to_string(folder.path().join("a.yaml")).unwrap();
    let (nodes, services) = text.split_once("{apiVersion: v1, kind: Service").unwrap();
    let (_cart, others) = services.split_once("---").unwrap();
    let text = format!("{nodes}{weighted}---{others}");
    std::fs::write(folder.path().join("a.yaml"), text).unwrap();
    let remote: Vec<String> = (1..=30)
        .map(|number| format!("10.244.2.{number}"))
        .collect();
    let mut endpoints = vec![("10.244.1.1", "n1")];
    endpoints.extend(remote.iter().map(|address| (&**address, "n2")));
    write_endpoints(folder.path(), &endpoints);
    let program = Program::in_folder(folder, &[]);
    program.line_with("the cluster is read");

    let question = query(CART, RecordType::A);
    let mut near = 0;
    for _ in 0..200 {
        let mut answer = over_udp(N1, program.address, &question);
        if answer.metadata.truncation {
            answer = over_tcp(N1, program.address, &question);
        }
        match answer.answers.len() {
            1 => near += 1,
            30 => {}
            other => panic!("{other} addresses"),
        }
    }
    assert!((155..=165).contains(&near), "{near} of 200");
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
        (query(CART, RecordType::AXFR), ResponseCode::Refused),
        (query(CART, RecordType::IXFR), ResponseCode::Refused),
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
fn is_refused(client: Ipv4Addr, server: SocketAddr) -> bool {
    let mut stream = connect(client, server);
    is_closed(&mut stream)
}

fn is_closed(stream: &mut TcpStream) -> bool {
    // Less than the time after which an idle connection is closed.
    let patience = Duration::from_secs(5);
    stream.set_read_timeout(Some(patience)).unwrap();
    // The end, or a reset, but no timeout.
    match stream.read(&mut [0]) {
        Ok(count) => count == 0,
        Err(error) => error.kind() == std::io::ErrorKind::ConnectionReset,
    }
}

#[test]
fn connections_are_limited_and_closed_when_idle() {
    let program = Program::with(ONE, &METRICS);
    let client = |number| Ipv4Addr::new(127, 0, 1, number);
    let open = (0..8).flat_map(|number| (0..32).map(move |_| client(number)));
    let mut open: Vec<_> = open
        .map(|client| connect(client, program.address))
        .collect();
    let opened = Instant::now();
    assert!(is_refused(client(9), program.address));
    let question = query(CART, RecordType::A);
    let last = open.last_mut().unwrap();
    send(last, &question.to_vec().unwrap());
    assert_eq!(answers(&receive(last)), ["10.244.1.10"]);
    assert_eq!(
        answers(&over_udp(N1, program.address, &question)),
        ["10.244.1.10"]
    );
    let metrics = Scrape::of(&program);
    let refused = |limit| {
        metrics.value(&format!(
            "ipvs_topo_dns_tcp_connections_refused_total{{reason=\"{limit}\"}}"
        ))
    };
    assert_eq!((refused("total"), refused("client")), ("1", "0"));
    assert_eq!(metrics.value("ipvs_topo_dns_tcp_connections"), "256");
    for stream in &mut open {
        assert_eq!(stream.read(&mut [0]).unwrap_or_default(), 0);
    }
    let idle = opened.elapsed();
    assert!(idle >= Duration::from_secs(8), "closed after {idle:?}");
    let answer = over_tcp(N1, program.address, &question);
    assert_eq!(answers(&answer), ["10.244.1.10"]);
}

#[test]
fn a_client_with_40_connections_keeps_32_and_no_other_client_from_tcp() {
    let program = Program::with(ONE, &METRICS);
    let mut open: Vec<_> = (0..40).map(|_| connect(N1, program.address)).collect();
    let question = query(CART, RecordType::A).to_vec().unwrap();
    for stream in open.iter_mut().skip(32) {
        assert!(is_closed(stream));
    }
    // The others are open, and another client can connect.
    let mut kept: Vec<_> = open.drain(..32).collect();
    kept.push(connect(N2, program.address));
    for stream in &mut kept {
        send(stream, &question);
        assert_eq!(answers(&receive(stream)), ["10.244.1.10"]);
    }
    let metrics = Scrape::of(&program);
    let refused = "ipvs_topo_dns_tcp_connections_refused_total{reason=\"client\"}";
    assert_eq!(metrics.value(refused), "8");
    assert_eq!(metrics.value("ipvs_topo_dns_tcp_connections"), "33");
    // A closed connection gives its place to the next one.
    drop(kept);
    let closed = Instant::now();
    while Scrape::of(&program).value("ipvs_topo_dns_tcp_connections") != "0" {
        assert!(closed.elapsed() < PATIENCE);
    }
    let answer = over_tcp(N1, program.address, &query(CART, RecordType::A));
    assert_eq!(answers(&answer), ["10.244.1.10"]);
}

#[test]
fn a_client_whose_questions_wait_keeps_no_other_client_from_the_upstream_server() {
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    silent.set_read_timeout(Some(PATIENCE)).unwrap();
    let address = silent.local_addr().unwrap().to_string();
    let options = [&METRICS[..], &["--upstream", &address]].concat();
    let program = Program::with(ONE, &options);
    let greedy = udp_from(N1, program.address);
    let mut question = query("www.example.com.", RecordType::A);
    for id in 0..=100 {
        question.metadata.id = id;
        greedy.send(&question.to_vec().unwrap()).unwrap();
    }
    // The first 100 wait for the upstream server, and fail later.
    let mut buffer = [0; 512];
    let length = greedy.recv(&mut buffer).unwrap();
    let refused = Message::from_vec(&buffer[..length]).unwrap();
    assert_eq!(refused.metadata.id, 100);
    assert_eq!(refused.metadata.response_code, ResponseCode::ServFail);
    let other = udp_from(N2, program.address);
    other.send(&question.to_vec().unwrap()).unwrap();
    for _ in 0..=100 {
        silent.recv(&mut buffer).unwrap();
    }
    let metrics = Scrape::of(&program);
    let refused = |limit| {
        metrics.value(&format!(
            "ipvs_topo_dns_forward_max_concurrent_rejects_total{{reason=\"{limit}\"}}"
        ))
    };
    assert_eq!((refused("client"), refused("total")), ("1", "0"));
}
