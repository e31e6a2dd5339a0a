//! What a connection is opened with.

use std::time::Duration;

/// A netlink protocol number (`NETLINK_*` in `include/uapi/linux/netlink.h`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NetlinkProtocol(i32);

impl NetlinkProtocol {
    /// Links, addresses, routes, rules, neighbours.
    pub const ROUTE: Self = Self(0);
    /// nftables, connection tracking, logging.
    pub const NETFILTER: Self = Self(12);
    /// Generic netlink, the home of IPVS.
    pub const GENERIC: Self = Self(16);

    /// Any other protocol.
    pub const fn new(number: i32) -> Self {
        Self(number)
    }

    /// The protocol's number.
    pub const fn number(self) -> i32 {
        self.0
    }
}

/// How a connection behaves. The defaults suit a table of 100,000 entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Options {
    /// The receive buffer asked for, in bytes: 8 MiB.
    ///
    /// It is forced beyond `net.core.rmem_max` where the process may (`CAP_NET_ADMIN`), else cut down to it. The
    /// kernel books twice the number. It bounds how many answers may be on their way, and costs memory only while
    /// they are.
    pub receive_buffer: usize,
    /// How long the blocking fronts wait for an answer: 30 seconds. Zero waits forever.
    ///
    /// The kernel answers while the request is being sent, so this is a guard, not a pace. The tokio fronts wait until
    /// they are dropped.
    pub answer_timeout: Duration,
    /// How many messages and bytes go into one datagram.
    pub limits: Limits,
    /// How many times a dump is tried while the kernel says that its table changed under it: 8.
    pub dump_attempts: u32,
    /// Whether what a request for a table says is a filter (`NETLINK_GET_STRICT_CHK`): no.
    ///
    /// `NETLINK_ROUTE` then lists only the routes of the table, protocol, type and link that the request names, and
    /// refuses a request that names something it cannot filter by. Needs Linux 4.20.
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

/// When a datagram is closed. A datagram holds at least one message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// At this many messages: 128, which is what a default receive buffer can answer if all fail.
    pub messages: usize,
    /// At this many bytes: 64 KiB. A default send buffer takes three times as many.
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
