//! Sends queries from any loopback address.

use std::io::{Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream, UdpSocket};

use hickory_proto::op::{Edns, Message, Query};
use hickory_proto::rr::{Name, RData, RecordType};
use hickory_proto::serialize::binary::{BinDecodable as _, BinDecoder};

use crate::program::PATIENCE;

/// A pod on the node `n1`.
pub(crate) const N1: Ipv4Addr = Ipv4Addr::new(127, 0, 1, 7);
/// A pod on the node `n2`.
pub(crate) const N2: Ipv4Addr = Ipv4Addr::new(127, 0, 2, 7);

/// The name of the headless Service.
pub(crate) const CART: &str = "cart.shop.svc.cluster.local.";

pub(crate) fn query(name: &str, record_type: RecordType) -> Message {
    let mut message = Message::query();
    message.metadata.recursion_desired = true;
    message.add_query(Query::query(Name::from_ascii(name).unwrap(), record_type));
    message
}

/// Offers to take UDP messages of this size.
pub(crate) fn with_size(mut message: Message, size: u16) -> Message {
    let mut edns = Edns::new();
    edns.set_max_payload(size);
    message.set_edns(edns);
    message
}

pub(crate) fn udp_from(client: Ipv4Addr, server: SocketAddr) -> UdpSocket {
    let socket = UdpSocket::bind((client, 0)).unwrap();
    socket.connect(server).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket
}

/// The bytes of the answer over UDP.
pub(crate) fn datagram(client: Ipv4Addr, server: SocketAddr, request: &[u8]) -> Vec<u8> {
    let socket = udp_from(client, server);
    socket.send(request).unwrap();
    let mut buffer = vec![0; 65_535];
    let length = socket.recv(&mut buffer).unwrap();
    buffer.truncate(length);
    buffer
}

/// The message in bytes, which have nothing after it.
pub(crate) fn whole(bytes: &[u8]) -> Message {
    let mut decoder = BinDecoder::new(bytes);
    let message = Message::read(&mut decoder).unwrap();
    assert!(
        decoder.is_empty(),
        "{} bytes follow {message}",
        decoder.len()
    );
    message
}

pub(crate) fn over_udp(client: Ipv4Addr, server: SocketAddr, message: &Message) -> Message {
    let bytes = datagram(client, server, &message.to_vec().unwrap());
    let answer = whole(&bytes);
    assert_eq!(answer.metadata.id, message.metadata.id);
    assert_eq!(answer.queries, message.queries);
    answer
}

/// Connects from this client.
pub(crate) fn connect(client: Ipv4Addr, server: SocketAddr) -> TcpStream {
    use rustix::net::{AddressFamily, SocketType, bind, connect, socket};
    let socket = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    bind(&socket, &SocketAddr::new(IpAddr::V4(client), 0)).unwrap();
    connect(&socket, &server).unwrap();
    let stream = TcpStream::from(socket);
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

pub(crate) fn send(stream: &mut TcpStream, bytes: &[u8]) {
    let length = u16::try_from(bytes.len()).unwrap();
    let message = [&length.to_be_bytes(), bytes].concat();
    stream.write_all(&message).unwrap();
}

pub(crate) fn receive(stream: &mut TcpStream) -> Message {
    let mut length = [0; 2];
    stream.read_exact(&mut length).unwrap();
    let mut bytes = vec![0; usize::from(u16::from_be_bytes(length))];
    stream.read_exact(&mut bytes).unwrap();
    Message::from_vec(&bytes).unwrap()
}

pub(crate) fn over_tcp(client: Ipv4Addr, server: SocketAddr, message: &Message) -> Message {
    let mut stream = connect(client, server);
    send(&mut stream, &message.to_vec().unwrap());
    let answer = receive(&mut stream);
    assert_eq!(answer.metadata.id, message.metadata.id);
    answer
}

/// The addresses and names in the answer, sorted.
pub(crate) fn answers(message: &Message) -> Vec<String> {
    let data = message.answers.iter().map(|record| match &record.data {
        RData::A(address) => address.to_string(),
        RData::CNAME(name) => name.to_string(),
        other => other.to_string(),
    });
    let mut data: Vec<String> = data.collect();
    data.sort();
    data
}
