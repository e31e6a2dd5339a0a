//! The deadline of a draining real server.

use std::net::IpAddr;

use crate::virtual_server::VirtualServerKey;

/// When a draining real server is deleted even with connections left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deadline {
    /// The virtual server.
    pub key: VirtualServerKey,
    /// The address of the real server.
    pub address: IpAddr,
    /// Its port.
    pub port: u16,
    /// In milliseconds of the caller's clock; `None` if it waits for its connections to end.
    pub until: Option<u64>,
}
