//! Asks a DNS server for the addresses of a name.

use std::io::{Error, Result};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::Duration;

use hickory_proto::op::{Message, Query};
use hickory_proto::rr::{Name, RData, RecordType};

use crate::source::unspecified;

/// Returns the first address in the answer of `server` to an A question.
pub(crate) fn first_address(name: &str, server: SocketAddr, patience: Duration) -> Result<IpAddr> {
    let name = Name::from_ascii(name).map_err(Error::other)?;
    let mut question = Message::query();
    question.add_query(Query::query(name, RecordType::A));
    let socket = UdpSocket::bind((unspecified(server), 0))?;
    socket.connect(server)?;
    socket.set_read_timeout(Some(patience))?;
    socket.send(&question.to_vec().map_err(Error::other)?)?;
    let mut bytes = [0; 512];
    let length = socket.recv(&mut bytes)?;
    let reply = bytes.get(..length).unwrap_or_default();
    let reply = Message::from_vec(reply).map_err(Error::other)?;
    let mut addresses = reply.answers.iter().filter_map(|record| match record.data {
        RData::A(address) => Some(IpAddr::V4(address.0)),
        _ => None,
    });
    let code = reply.metadata.response_code;
    let none = || Error::other(format!("no address in the answer, {code}"));
    addresses.next().ok_or_else(none)
}
