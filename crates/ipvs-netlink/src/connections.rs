//! Connections that the kernel keeps, from `/proc/net/ip_vs_conn`.

mod line;

use std::io::{self, BufRead};
use std::net::SocketAddr;

use crate::Protocol;

/// Where the kernel shows the connections of the reading process's network namespace.
pub const PATH: &str = "/proc/net/ip_vs_conn";

/// One connection, or one persistence entry.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Connection {
    /// The protocol. Persistence entries of firewall-mark services have protocol 0.
    pub protocol: Protocol,
    /// The client. Persistence entries have port 0 and the client's network.
    pub client: SocketAddr,
    /// The virtual address and port. For persistence entries of firewall-mark services the address is the mark.
    pub virtual_server: SocketAddr,
    /// The real server.
    pub destination: SocketAddr,
    /// The state by its kernel name, such as `ESTABLISHED`; `NONE` or `ASSURED` for persistence entries.
    pub state: String,
    /// Seconds until the entry is dropped, if nothing more happens.
    pub expires: u32,
    /// The persistence engine's name and what it knows of the connection.
    pub persistence: Option<(String, String)>,
}

/// A line that could not be understood.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {number}: {reason}: {text:?}")]
#[non_exhaustive]
pub struct MalformedLine {
    /// The line's number; the heading is line 1.
    pub number: usize,
    /// What is wrong.
    pub reason: &'static str,
    /// The line.
    pub text: String,
}

/// Reads connections one at a time. Lines that make no sense are items of their own and do not end the reading.
///
/// A table may hold millions of entries: nothing but the current line is kept.
///
/// It is no snapshot. Between two reads of the file the kernel remembers a position in its table
/// (`ip_vs_conn_array` of `net/netfilter/ipvs/ip_vs_conn.c`): where connections come or go meanwhile, an entry may come
/// twice or not at all. In kernels as old as 6.12 that table holds the connections of all network namespaces, so what
/// others do disturbs it, too.
///
/// ```
/// use ipvs_netlink::connections;
///
/// let table = "\
/// Pro FromIP   FPrt ToIP     TPrt DestIP   DPrt State       Expires PEName PEData
/// TCP C0A80001 C350 0A60000A 0050 0AF40102 1F90 ESTABLISHED     899
/// TCP nonsense
/// ";
/// let items: Vec<_> = connections::read(table.as_bytes()).map(Result::unwrap).collect();
/// assert_eq!(items[0].as_ref().unwrap().client.to_string(), "192.168.0.1:50000");
/// assert_eq!(items[1].as_ref().unwrap_err().number, 3);
/// ```
pub fn read<R: BufRead>(source: R) -> Connections<R> {
    Connections {
        source,
        number: 0,
        line: Vec::new(),
        failed: false,
    }
}

/// The connections in a reader; see [`read`].
#[derive(Debug)]
pub struct Connections<R> {
    source: R,
    number: usize,
    line: Vec<u8>,
    failed: bool,
}

impl<R: BufRead> Iterator for Connections<R> {
    type Item = io::Result<Result<Connection, MalformedLine>>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.failed {
            self.line.clear();
            self.number += 1;
            match self.source.read_until(b'\n', &mut self.line) {
                Ok(0) => return None,
                Ok(_) => {}
                Err(error) => {
                    self.failed = true;
                    return Some(Err(error));
                }
            }
            let text = self.line.trim_ascii_end();
            if text.is_empty() || (self.number == 1 && text.starts_with(b"Pro ")) {
                continue;
            }
            let parsed = line::parse(text).map_err(|reason| MalformedLine {
                number: self.number,
                reason,
                text: String::from_utf8_lossy(text).into_owned(),
            });
            return Some(Ok(parsed));
        }
        None
    }
}
