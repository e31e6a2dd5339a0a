//! Parses one line of the table (`ip_vs_conn_seq_show` in `net/netfilter/ipvs/ip_vs_conn.c`).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use super::entry::ConnectionEntry;
use crate::Protocol;

/// Hexadecimal digits of an IPv4 address.
const V4_DIGITS: usize = 8;

/// Parses a line; the error says what is wrong with it.
pub(super) fn parse(line: &[u8]) -> Result<ConnectionEntry, &'static str> {
    let line = str::from_utf8(line).ok().ok_or("not text")?;
    let mut fields = line.split_ascii_whitespace();
    let mut next = |what: &'static str| fields.next().ok_or(what);
    let protocol = protocol(next("no protocol")?)?;
    let client = endpoint(next("no client address")?, next("no client port")?)?;
    let virtual_server = endpoint(next("no virtual address")?, next("no virtual port")?)?;
    let destination = endpoint(
        next("no destination address")?,
        next("no destination port")?,
    )?;
    let state = next("no state")?.to_owned();
    let expires = next("no time until it expires")?;
    let expires = expires
        .parse()
        .ok()
        .ok_or("the time until it expires is not a number")?;
    let engine = fields.next().map(|name| {
        let data: Vec<_> = fields.collect();
        (name.to_owned(), data.join(" "))
    });
    Ok(ConnectionEntry {
        protocol,
        client,
        virtual_server,
        destination,
        state,
        expires,
        persistence: engine,
    })
}

/// Parses `ip_vs_proto_name`: a name, or `IP_` and the number.
fn protocol(name: &str) -> Result<Protocol, &'static str> {
    let number = match name {
        "TCP" => return Ok(Protocol::TCP),
        "UDP" => return Ok(Protocol::UDP),
        "SCTP" => return Ok(Protocol::SCTP),
        "IP" => 0,
        "ICMP" => 1,
        "ICMPv6" => 58,
        other => other
            .strip_prefix("IP_")
            .and_then(|number| number.parse().ok())
            .ok_or("unknown protocol")?,
    };
    Ok(Protocol::new(number))
}

fn endpoint(address: &str, port: &str) -> Result<SocketAddr, &'static str> {
    let port = u16::from_str_radix(port, 16)
        .ok()
        .ok_or("a port is not a hexadecimal number")?;
    Ok(SocketAddr::new(address_of(address)?, port))
}

/// Parses IPv4 as one hexadecimal number, and IPv6 in its usual form with all zeros.
fn address_of(text: &str) -> Result<IpAddr, &'static str> {
    if text.len() == V4_DIGITS && !text.contains(':') {
        let bits = u32::from_str_radix(text, 16)
            .ok()
            .ok_or("an address is not a number")?;
        return Ok(Ipv4Addr::from_bits(bits).into());
    }
    let address: Ipv6Addr = text.parse().ok().ok_or("an address is malformed")?;
    Ok(address.into())
}
