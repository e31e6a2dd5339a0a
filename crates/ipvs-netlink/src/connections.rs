//! Reads the kernel's IPVS connections from `/proc/net/ip_vs_conn`.

mod entry;
mod line;

use std::io::{self, BufRead};

pub use entry::ConnectionEntry;

/// The file with the connections of the reading process's network namespace.
pub const PATH: &str = "/proc/net/ip_vs_conn";

/// A line that could not be parsed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {number}: {reason}: {text:?}")]
#[non_exhaustive]
pub struct MalformedLine {
    /// The line number; the heading is line 1.
    pub number: usize,
    /// What is wrong with the line.
    pub reason: &'static str,
    /// The text of the line.
    pub text: String,
}

/// Reads connections one at a time. A line that cannot be parsed is an item of its own and does not end the iteration.
///
/// A table may have millions of entries: only the current line is in memory.
///
/// The result is not a snapshot. Between two reads of the file the kernel remembers a position in its table
/// (`ip_vs_conn_array` of `net/netfilter/ipvs/ip_vs_conn.c`). If connections are added or removed meanwhile, an entry
/// may be listed twice or not at all. In kernels up to 6.12 that table holds the connections of all network namespaces,
/// so changes in other namespaces have this effect, too.
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

/// Iterates over the connections in a reader; see [`read`].
#[derive(Debug)]
pub struct Connections<R> {
    source: R,
    number: usize,
    line: Vec<u8>,
    failed: bool,
}

impl<R: BufRead> Iterator for Connections<R> {
    type Item = io::Result<Result<ConnectionEntry, MalformedLine>>;

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
