//! Asks a DNS server for the addresses of a name.

use std::io::{Error, Result};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::Duration;

use hickory_proto::rr::RData;

use crate::dns_message::{question, records};
use crate::source::unspecified;

/// Each question has a socket of its own, so the identifier need not differ.
const ID: u16 = 1;

/// Returns the first address in the answer of `server` to an A question.
pub(crate) fn first_address(name: &str, server: SocketAddr, patience: Duration) -> Result<IpAddr> {
    let socket = UdpSocket::bind((unspecified(server), 0))?;
    socket.connect(server)?;
    socket.set_read_timeout(Some(patience))?;
    socket.send(&question(ID, name)?)?;
    let mut bytes = [0; 2048];
    let length = socket.recv(&mut bytes)?;
    let records = records(bytes.get(..length).unwrap_or_default(), ID)?;
    let mut addresses = records.iter().filter_map(|record| match record.data {
        RData::A(address) => Some(IpAddr::V4(address.0)),
        _ => None,
    });
    let none = || Error::other("no address in the answer");
    addresses.next().ok_or_else(none)
}
