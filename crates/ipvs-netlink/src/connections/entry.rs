//! One entry of the connection table.

use std::net::SocketAddr;

use crate::Protocol;

/// A connection, or a persistence entry.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConnectionEntry {
    /// The protocol. Persistence entries of firewall-mark services have protocol 0.
    pub protocol: Protocol,
    /// The client. Persistence entries have port 0 and the client's network.
    pub client: SocketAddr,
    /// The virtual address and port. The address is the mark for persistence entries of firewall-mark services.
    pub virtual_server: SocketAddr,
    /// The real server.
    pub destination: SocketAddr,
    /// The state by its kernel name, such as `ESTABLISHED`; `NONE` or `ASSURED` for persistence entries.
    pub state: String,
    /// Seconds until the entry expires without further packets.
    pub expires: u32,
    /// The persistence engine and its data about the connection.
    pub persistence: Option<(String, String)>,
}
