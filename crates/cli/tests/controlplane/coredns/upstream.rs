//! The server for other names, which both servers ask.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, UdpSocket};

use hickory_proto::op::{Message, ResponseCode};
use hickory_proto::rr::{RData, Record, RecordType};

use crate::client::{receive, send};

const KNOWN: &str = "www.example.com.";
const ADDRESS: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 80);
const TTL: u32 = 300;

/// The response code and the records of a name.
pub(crate) fn records(name: &str, record_type: RecordType) -> (ResponseCode, BTreeSet<String>) {
    if name != KNOWN {
        return (ResponseCode::NXDomain, BTreeSet::new());
    }
    let record = format!("{KNOWN} {TTL} A {ADDRESS}");
    let records = (record_type == RecordType::A).then_some(record);
    (ResponseCode::NoError, records.into_iter().collect())
}

/// Starts the server, which runs until the test ends.
pub(crate) fn start() -> SocketAddr {
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = tcp.local_addr().unwrap();
    let udp = UdpSocket::bind(address).unwrap();
    std::thread::spawn(move || {
        let mut buffer = [0; 4_096];
        while let Ok((length, client)) = udp.recv_from(&mut buffer) {
            let answer = answer(&Message::from_vec(&buffer[..length]).unwrap());
            udp.send_to(&answer.to_vec().unwrap(), client).unwrap();
        }
    });
    std::thread::spawn(move || {
        for mut stream in tcp.incoming().map_while(Result::ok) {
            let question = receive(&mut stream);
            send(&mut stream, &answer(&question).to_vec().unwrap());
        }
    });
    address
}

fn answer(question: &Message) -> Message {
    let query = question.queries[0].clone();
    let (code, records) = records(&query.name().to_ascii().to_lowercase(), query.query_type());
    let mut answer = question.clone().into_response();
    answer.metadata.response_code = code;
    for _ in records {
        let data = RData::A(ADDRESS.into());
        answer.add_answer(Record::from_rdata(query.name().clone(), TTL, data));
    }
    answer
}
