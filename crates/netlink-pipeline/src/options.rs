//! Options of a connection.

use std::time::Duration;

/// A netlink protocol number (`NETLINK_*` in `include/uapi/linux/netlink.h`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NetlinkProtocol(i32);

impl NetlinkProtocol {
    /// Links, addresses, routes, rules, neighbours.
    pub const ROUTE: Self = Self(0);
    /// nftables, connection tracking, logging.
    pub const NETFILTER: Self = Self(12);
    /// Generic netlink, which IPVS uses.
    pub const GENERIC: Self = Self(16);

    /// Any other protocol.
    pub const fn new(number: i32) -> Self {
        Self(number)
    }

    /// The protocol number.
    pub const fn number(self) -> i32 {
        self.0
    }
}

/// Options of a connection. The defaults suit a table of 100,000 entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Options {
    /// Size of the receive buffer to request, in bytes: 8 MiB.
    ///
    /// With `CAP_NET_ADMIN` it may exceed `net.core.rmem_max`, without it is cut to that limit. The kernel accounts for
    /// twice the number. The size limits how many replies may be in flight, and takes memory only while they are.
    pub receive_buffer: usize,
    /// How long a blocking connection waits for a reply: 30 seconds. Zero waits forever.
    ///
    /// The kernel replies while the request is being sent, so this only guards against a hang. An async connection
    /// waits until its future is dropped.
    pub answer_timeout: Duration,
    /// How many messages and bytes go into one datagram.
    pub limits: Limits,
    /// How many times a dump is attempted while the kernel reports that its table changed: 8.
    pub dump_attempts: u32,
    /// Whether the kernel filters dumps by the values in the request (`NETLINK_GET_STRICT_CHK`): no.
    ///
    /// If set, `NETLINK_ROUTE` lists only routes of the table, protocol, type and link that the request names, and
    /// refuses a request with a value that it cannot filter by. Needs Linux 4.20.
    pub strict: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            receive_buffer: 8 << 20,
            answer_timeout: Duration::from_secs(30),
            limits: Limits::default(),
            dump_attempts: 8,
            strict: false,
        }
    }
}

/// When a datagram is full. A datagram holds at least one message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// At this many messages: 128, the number of errors that fit into a default receive buffer.
    pub messages: usize,
    /// At this many bytes: 64 KiB. A default send buffer takes three times as much.
    pub bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            messages: 128,
            bytes: 64 << 10,
        }
    }
}
