//! Other names are forwarded, and aliases are followed.

use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use hickory_proto::op::{Message, ResponseCode};
use hickory_proto::rr::{RData, Record, RecordType};

use crate::client::{N1, answers, over_tcp, over_udp, query, receive, send, with_size};
use crate::program::{PATIENCE, Program};

const ONE: &[(&str, &str)] = &[("10.244.1.10", "n1")];

/// A server that answers every question with 192.0.2.80, over UDP and TCP.
pub(crate) struct Upstream {
    pub(crate) address: SocketAddr,
    questions: Arc<AtomicUsize>,
}

fn answer(question: &Message) -> Message {
    let query = question.queries[0].clone();
    let data = RData::A(std::net::Ipv4Addr::new(192, 0, 2, 80).into());
    let mut answer = question.clone().into_response();
    answer.add_answer(Record::from_rdata(query.name().clone(), 300, data));
    if query.name().to_ascii().starts_with("absent") {
        answer.answers.clear();
        answer.metadata.response_code = ResponseCode::NXDomain;
    }
    answer
}

impl Upstream {
    pub(crate) fn start() -> Self {
        let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = tcp.local_addr().unwrap();
        let udp = UdpSocket::bind(address).unwrap();
        let questions = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&questions);
        std::thread::spawn(move || {
            let mut buffer = [0; 4_096];
            while let Ok((length, client)) = udp.recv_from(&mut buffer) {
                count.fetch_add(1, Ordering::SeqCst);
                let question = Message::from_vec(&buffer[..length]).unwrap();
                // A forged answer with another id comes first, and must not count.
                let mut forged = answer(&question);
                forged.metadata.id ^= 1;
                forged.answers.clear();
                udp.send_to(&forged.to_vec().unwrap(), client).unwrap();
                udp.send_to(&answer(&question).to_vec().unwrap(), client)
                    .unwrap();
            }
        });
        let count = Arc::clone(&questions);
        std::thread::spawn(move || {
            for mut stream in tcp.incoming().map_while(Result::ok) {
                count.fetch_add(1, Ordering::SeqCst);
                let question = receive(&mut stream);
                send(&mut stream, &answer(&question).to_vec().unwrap());
            }
        });
        Self { address, questions }
    }

    fn questions(&self) -> usize {
        self.questions.load(Ordering::SeqCst)
    }
}

#[test]
fn other_names_and_external_names_come_from_the_upstream_server() {
    let upstream = Upstream::start();
    let program = Program::with(ONE, &["--upstream", &upstream.address.to_string()]);
    let question = query("www.example.com.", RecordType::A);
    for ask in [over_udp, over_tcp] {
        let found = ask(N1, program.address, &question);
        assert_eq!(answers(&found), ["192.0.2.80"]);
        assert!(found.metadata.recursion_available && !found.metadata.authoritative);
        let away = query("away.shop.svc.cluster.local.", RecordType::A);
        let found = ask(N1, program.address, &with_size(away, 1_232));
        assert_eq!(answers(&found), ["192.0.2.80", "www.example.com."]);
    }
    let absent = query("absent.example.com.", RecordType::A);
    let found = over_udp(N1, program.address, &absent);
    assert_eq!(found.metadata.response_code, ResponseCode::NXDomain);
    let pointer = query("9.9.9.9.in-addr.arpa.", RecordType::PTR);
    assert_eq!(answers(&over_udp(N1, program.address, &pointer)).len(), 1);
    assert_eq!(upstream.questions(), 6);
    // Names of the cluster never leave it.
    let ours = query("x.shop.svc.cluster.local.", RecordType::A);
    over_udp(N1, program.address, &ours);
    assert_eq!(upstream.questions(), 6);
}

#[test]
fn without_an_upstream_server_an_external_name_is_only_an_alias() {
    let program = Program::with(ONE, &[]);
    let away = query("away.shop.svc.cluster.local.", RecordType::A);
    let found = over_udp(N1, program.address, &away);
    assert_eq!(answers(&found), ["www.example.com."]);
    assert_eq!(found.metadata.response_code, ResponseCode::NoError);
}

#[test]
fn a_silent_upstream_server_is_asked_once_and_then_the_next_one() {
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let upstream = Upstream::start();
    let addresses = [silent.local_addr().unwrap(), upstream.address].map(|it| it.to_string());
    let [first, second] = &addresses;
    let program = Program::with(ONE, &["--upstream", first, "--upstream", second]);
    let question = query("www.example.com.", RecordType::A);
    for _ in 0..5 {
        let found = over_udp(N1, program.address, &question);
        assert_eq!(answers(&found), ["192.0.2.80"]);
    }
    silent.set_nonblocking(true).unwrap();
    let mut asked = 0;
    while silent.recv(&mut [0; 512]).is_ok() {
        asked += 1;
    }
    assert_eq!(asked, 1);
}

#[test]
fn without_an_answer_of_any_upstream_server_the_query_fails_and_ours_are_answered_meanwhile() {
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap().to_string();
    let program = Program::with(ONE, &["--upstream", &address]);
    let server = program.address;
    let started = Instant::now();
    let waiting =
        std::thread::spawn(move || over_udp(N1, server, &query("www.example.com.", RecordType::A)));
    silent.set_read_timeout(Some(PATIENCE)).unwrap();
    silent.recv(&mut [0; 512]).unwrap();
    let ours = query("web.shop.svc.cluster.local.", RecordType::A);
    assert_eq!(answers(&over_udp(N1, server, &ours)), ["10.96.0.10"]);
    assert!(!waiting.is_finished());
    let failed = waiting.join().unwrap();
    assert_eq!(failed.metadata.response_code, ResponseCode::ServFail);
    assert!(started.elapsed().as_secs() >= 2);
}
