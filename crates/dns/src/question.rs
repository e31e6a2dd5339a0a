//! The question of a client.

use std::net::IpAddr;

use hickory_proto::rr::{Name, RecordType};

/// The shortest record: the root is its name, and it has no data.
const LEAST_RECORD_BYTES: u16 = 11;

/// How a question comes, and its reply goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DnsTransport {
    Udp,
    Tcp,
}

impl DnsTransport {
    pub const ALL: [Self; 2] = [Self::Udp, Self::Tcp];

    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Udp => "udp",
            Self::Tcp => "tcp",
        }
    }
}

/// The question of a client.
#[derive(Debug, Clone, Copy)]
pub struct DnsQuestion<'a> {
    pub name: &'a Name,
    pub record_type: RecordType,
    pub client: IpAddr,
    pub transport: DnsTransport,
    /// The longest reply that the client takes.
    pub most_bytes: u16,
    /// In milliseconds since 1970.
    pub now: i64,
}

impl DnsQuestion<'_> {
    /// One record more than the reply can have, so that a reply with as many is truncated.
    pub(crate) fn most_records(&self) -> usize {
        usize::from(self.most_bytes / LEAST_RECORD_BYTES) + 1
    }
}
