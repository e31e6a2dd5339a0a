//! Encodes and decodes the few `ctnetlink` messages that are needed: list by original destination, delete one.
//!
//! Names and numbers are those of `linux/netfilter/nfnetlink_conntrack.h`. All integers inside attributes are
//! big-endian.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use netlink_pipeline::{Attribute, Attributes, Writer};
use topology_core::model::Family;

use super::batch::Flow;

/// `NFNL_SUBSYS_CTNETLINK << 8 | IPCTNL_MSG_CT_GET`.
pub(super) const GET: u16 = 0x0101;
/// `NFNL_SUBSYS_CTNETLINK << 8 | IPCTNL_MSG_CT_DELETE`.
pub(super) const DELETE: u16 = 0x0102;

/// `struct nfgenmsg`: family, version, resource id.
const HEADER: usize = 4;
const AF_INET: u8 = 2;
const AF_INET6: u8 = 10;

const CTA_TUPLE_ORIG: u16 = 1;
const CTA_TUPLE_REPLY: u16 = 2;
const CTA_ID: u16 = 12;
const CTA_ZONE: u16 = 18;
const CTA_FILTER: u16 = 25;
const CTA_FILTER_ORIG_FLAGS: u16 = 1;
const CTA_FILTER_REPLY_FLAGS: u16 = 2;

const CTA_TUPLE_IP: u16 = 1;
const CTA_TUPLE_PROTO: u16 = 2;
const CTA_IP_V4_DST: u16 = 2;
const CTA_IP_V6_DST: u16 = 4;
const CTA_IP_V4_SRC: u16 = 1;
const CTA_IP_V6_SRC: u16 = 3;
const CTA_PROTO_NUM: u16 = 1;
const CTA_PROTO_SRC_PORT: u16 = 2;
const CTA_PROTO_DST_PORT: u16 = 3;

/// `CTA_FILTER_FLAG(CTA_PROTO_NUM)` (`net/netfilter/nf_internals.h`).
const MATCH_PROTOCOL: u32 = 1 << 3;
/// `CTA_FILTER_FLAG(CTA_PROTO_DST_PORT)`.
const MATCH_PORT: u32 = 1 << 5;
/// `CTA_FILTER_FLAG(CTA_IP_DST)`, used for IPv4 only. For IPv6 the kernel lists exactly the addresses that do *not*
/// match (`ctnetlink_filter_match_tuple` tests `!ipv6_addr_cmp`; seen on 6.18).
const MATCH_ADDRESS: u32 = 1 << 1;

const UDP: u8 = 17;

/// The parts of an entry that a deletion needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ConntrackEntry {
    pub(super) flow: Flow,
    /// The key of the entry in a deletion: its original tuple, id and zone, as received.
    name: Vec<u8>,
}

#[cfg(test)]
impl ConntrackEntry {
    /// An entry of this flow, without a key.
    pub(super) fn of(flow: Flow) -> Self {
        let name = Vec::new();
        Self { flow, name }
    }
}

/// Which UDP entries to list, by their original destination.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Selection {
    /// One address and port.
    Port(IpAddr, u16),
    /// One address.
    Address(IpAddr),
    /// A whole family.
    Family(Family),
}

impl Selection {
    /// The narrowest selection that also contains this address and port, of the same family.
    pub(super) fn with(self, address: IpAddr, port: u16) -> Self {
        match self {
            Self::Port(own, own_port) if (own, own_port) == (address, port) => self,
            Self::Port(own, _) | Self::Address(own) if own == address => Self::Address(own),
            Self::Port(..) | Self::Address(_) | Self::Family(_) => {
                Self::Family(Family::of(address))
            }
        }
    }

    pub(super) fn family(&self) -> Family {
        match self {
            Self::Port(address, _) | Self::Address(address) => Family::of(*address),
            Self::Family(family) => *family,
        }
    }
}

/// Encodes the request that lists the entries of a selection.
///
/// The reader compares, too, because the kernel may list more: it does not filter IPv6 by address, and before 5.8 not
/// at all.
pub(super) fn list(selection: &Selection) -> Vec<u8> {
    let family = selection.family();
    let (address, port) = match selection {
        Selection::Port(address, port) => (Some(*address), Some(*port)),
        Selection::Address(address) => (Some(*address), None),
        Selection::Family(_) => (None, None),
    };
    let mut body = header(family);
    let mut out = Writer::new(&mut body);
    out.nested(CTA_TUPLE_ORIG, |tuple| {
        if let Some(address) = address {
            tuple.nested(CTA_TUPLE_IP, |ip| write_address(ip, address));
        }
        tuple.nested(CTA_TUPLE_PROTO, |proto| {
            proto.fixed(CTA_PROTO_NUM, [UDP]);
            if let Some(port) = port {
                proto.fixed(CTA_PROTO_DST_PORT, port.to_be_bytes());
            }
        });
    });
    let mut flags = MATCH_PROTOCOL;
    if port.is_some() {
        flags |= MATCH_PORT;
    }
    if address.is_some_and(|address| address.is_ipv4()) {
        flags |= MATCH_ADDRESS;
    }
    out.nested(CTA_FILTER, |filter| {
        // These two are NLA_U32 in host byte order, not NLA_BE32.
        filter.fixed(CTA_FILTER_ORIG_FLAGS, flags.to_ne_bytes());
        filter.fixed(CTA_FILTER_REPLY_FLAGS, 0_u32.to_ne_bytes());
    });
    body
}

/// Encodes the request that deletes exactly `entry`.
pub(super) fn delete(entry: &ConntrackEntry) -> Vec<u8> {
    let mut body = header(Family::of(entry.flow.service.0));
    body.extend_from_slice(&entry.name);
    body
}

/// Decodes a listed entry; `None` if it is not UDP or has no readable tuples.
pub(super) fn parse(body: &[u8]) -> Option<ConntrackEntry> {
    let mut name = Vec::new();
    let mut out = Writer::new(&mut name);
    let (mut original, mut reply) = (None, None);
    for attribute in attributes(body.get(HEADER..)?) {
        let (number, value) = (attribute.number(), attribute.value);
        match number {
            CTA_TUPLE_ORIG => {
                original = tuple(value);
                out.nested(number, |out| out.bytes(value));
            }
            CTA_TUPLE_REPLY => reply = tuple(value),
            CTA_ID | CTA_ZONE => out.attribute(number, value),
            _ => {}
        }
    }
    let (original, reply) = (original?, reply?);
    if original.protocol != UDP {
        return None;
    }
    let flow = Flow {
        service: original.destination,
        server: reply.source,
    };
    Some(ConntrackEntry { flow, name })
}

struct Tuple {
    protocol: u8,
    source: (IpAddr, u16),
    destination: (IpAddr, u16),
}

fn tuple(value: &[u8]) -> Option<Tuple> {
    let (mut source, mut destination) = (None, None);
    let (mut protocol, mut ports) = (None, (None, None));
    for outer in attributes(value) {
        for inner in attributes(outer.value) {
            let value = inner.value;
            match (outer.number(), inner.number()) {
                (CTA_TUPLE_IP, CTA_IP_V4_SRC | CTA_IP_V6_SRC) => source = address(value),
                (CTA_TUPLE_IP, CTA_IP_V4_DST | CTA_IP_V6_DST) => destination = address(value),
                (CTA_TUPLE_PROTO, CTA_PROTO_NUM) => protocol = value.first().copied(),
                (CTA_TUPLE_PROTO, CTA_PROTO_SRC_PORT) => ports.0 = port(value),
                (CTA_TUPLE_PROTO, CTA_PROTO_DST_PORT) => ports.1 = port(value),
                _ => {}
            }
        }
    }
    Some(Tuple {
        protocol: protocol?,
        source: (source?, ports.0.unwrap_or_default()),
        destination: (destination?, ports.1.unwrap_or_default()),
    })
}

fn address(value: &[u8]) -> Option<IpAddr> {
    let v4 = <[u8; 4]>::try_from(value).map(|bytes| IpAddr::V4(Ipv4Addr::from(bytes)));
    let v6 = <[u8; 16]>::try_from(value).map(|bytes| IpAddr::V6(Ipv6Addr::from(bytes)));
    v4.or(v6).ok()
}

fn port(value: &[u8]) -> Option<u16> {
    <[u8; 2]>::try_from(value).map(u16::from_be_bytes).ok()
}

fn header(family: Family) -> Vec<u8> {
    let family = match family {
        Family::V4 => AF_INET,
        Family::V6 => AF_INET6,
    };
    vec![family, 0, 0, 0]
}

fn write_address(out: &mut Writer<'_>, address: IpAddr) {
    match address {
        IpAddr::V4(ip) => out.fixed(CTA_IP_V4_DST, ip.octets()),
        IpAddr::V6(ip) => out.fixed(CTA_IP_V6_DST, ip.octets()),
    }
}

/// Iterates over attributes; stops at the first one that does not fit.
fn attributes(bytes: &[u8]) -> impl Iterator<Item = Attribute<'_>> {
    Attributes::new(bytes).map_while(Result::ok)
}

/// Checks that a deletion identifies the entry that was read, by its original tuple.
#[cfg(fuzzing)]
pub(super) fn fuzz(bytes: &[u8]) {
    let Some(entry) = parse(bytes) else {
        return;
    };
    let body = delete(&entry);
    let original = attributes(body.get(HEADER..).unwrap_or_default())
        .filter(|attribute| attribute.number() == CTA_TUPLE_ORIG)
        .last();
    let destination = original.and_then(|original| Some(tuple(original.value)?.destination));
    assert_eq!(destination, Some(entry.flow.service));
}

#[cfg(test)]
mod tests;
