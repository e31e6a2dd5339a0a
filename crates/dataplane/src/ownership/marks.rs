//! Records the firewall marks of Service ports, so that a restart of the agent changes no mark.
//!
//! The file is beside the ownership record. A line gives a mark to a Service port (`+ 0x20001235 TCP shop/web http sum
//! 5f0c1a2b`; the name of the port may be empty) or takes it away (`- TCP shop/web http sum 77d1e09c`). The first is written
//! before the nftables tables and IPVS use the mark, and the second after the virtual servers of the mark are deleted: until
//! then a restart lets their connections end. The last line about a port counts, and the last line about a mark.
//! A damaged line is ignored, and its port gets a mark as a new Service does. A record of another boot is void, because
//! the kernel's tables were lost.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use topology_core::model::{ObjectName, Protocol};
use topology_core::snapshot::MarkedPort;

use crate::crash_point::CrashPoint;
use crate::ownership::checked_record::{CheckedRecord, LineFormat, ParsedLines};

/// The open record.
#[derive(Debug)]
pub struct MarkRecord(CheckedRecord<MarkLine>);

/// A port that gets a mark or loses it.
#[derive(Debug)]
struct MarkLine;

/// The contents of the record when it was opened.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct SavedMarks {
    /// The ports and their marks, sorted. No mark is there twice.
    pub marks: Vec<(MarkedPort, u32)>,
    /// Lines that could not be parsed (a torn last line, a manual edit).
    pub damaged: usize,
}

impl SavedMarks {
    /// Reads the record in `directory` without opening it for writing; empty if it does not exist.
    pub fn read(directory: &Path, boot: &str) -> io::Result<Self> {
        let record = CheckedRecord::<MarkLine>::new(directory, boot);
        Ok(Self::after(record.read()?))
    }

    fn after(lines: ParsedLines<(MarkedPort, Option<u32>)>) -> Self {
        let mut holders = Holders::default();
        for (port, mark) in lines.entries {
            match mark {
                Some(mark) => holders.give(port, mark),
                None => holders.take(&port),
            }
        }
        Self {
            marks: holders.by_port.into_iter().collect(),
            damaged: lines.damaged,
        }
    }
}

/// Marks and their ports, one to one. After a damaged line an earlier holder of a mark may seem to hold it still.
#[derive(Default)]
struct Holders {
    by_port: BTreeMap<MarkedPort, u32>,
    by_mark: BTreeMap<u32, MarkedPort>,
}

impl Holders {
    fn give(&mut self, port: MarkedPort, mark: u32) {
        self.take(&port);
        if let Some(earlier) = self.by_mark.insert(mark, port.clone()) {
            self.by_port.remove(&earlier);
        }
        self.by_port.insert(port, mark);
    }

    fn take(&mut self, port: &MarkedPort) {
        if let Some(mark) = self.by_port.remove(port) {
            self.by_mark.remove(&mark);
        }
    }
}

impl MarkRecord {
    /// Opens or creates the record in `directory`, which exists; `boot` is the kernel's boot id. After an error the
    /// next change tries again.
    pub fn open(directory: &Path, boot: &str) -> (Self, io::Result<SavedMarks>) {
        let mut record = CheckedRecord::new(directory, boot);
        let saved = record.open(SavedMarks::after, |saved| held(saved.marks.iter().cloned()));
        (Self(record), saved)
    }

    /// Records marks that are allocated or freed. `all` iterates over all marks, including these, in case the file
    /// is rewritten. After an error the file has the earlier marks, and the next change writes all.
    pub fn save(
        &mut self,
        changed: &[(MarkedPort, Option<u32>)],
        all: &mut dyn Iterator<Item = (MarkedPort, u32)>,
        crash_point: &CrashPoint,
    ) -> io::Result<()> {
        self.0.save(changed, || held(all), crash_point)
    }
}

fn held(marks: impl Iterator<Item = (MarkedPort, u32)>) -> Vec<(MarkedPort, Option<u32>)> {
    marks.map(|(port, mark)| (port, Some(mark))).collect()
}

impl LineFormat for MarkLine {
    const FILE: &'static str = "marks";
    type Entry = (MarkedPort, Option<u32>);

    fn print((port, mark): &Self::Entry) -> String {
        let MarkedPort {
            service,
            port_name,
            protocol,
        } = port;
        match mark {
            Some(mark) => format!("+ {mark:#010x} {protocol} {service} {port_name}"),
            None => format!("- {protocol} {service} {port_name}"),
        }
    }

    fn parse(words: &str) -> Option<Self::Entry> {
        match words.split_once(' ')? {
            ("+", words) => {
                let (mark, words) = words.split_once(' ')?;
                let mark = u32::from_str_radix(mark.strip_prefix("0x")?, 16).ok()?;
                Some((parse_port(words)?, Some(mark)))
            }
            ("-", words) => Some((parse_port(words)?, None)),
            _ => None,
        }
    }
}

/// Parses `TCP shop/web http`.
fn parse_port(words: &str) -> Option<MarkedPort> {
    let (protocol, words) = words.split_once(' ')?;
    let (service, port_name) = words.split_once(' ')?;
    let protocol = match protocol {
        "TCP" => Protocol::Tcp,
        "UDP" => Protocol::Udp,
        "SCTP" => Protocol::Sctp,
        _ => return None,
    };
    Some(MarkedPort {
        service: ObjectName::parse(service)?,
        port_name: port_name.into(),
        protocol,
    })
}

/// Checks that a record of the parsed marks parses to the same.
#[cfg(fuzzing)]
pub fn fuzz(text: &str) {
    use crate::ownership::checked_record::{parse_fuzzed, reparse};
    let of = |entries| {
        SavedMarks::after(ParsedLines {
            entries,
            damaged: 0,
        })
    };
    let saved = of(parse_fuzzed::<MarkLine>(text));
    let all = held(saved.marks.iter().cloned());
    assert_eq!(of(reparse::<MarkLine>(&all)), saved);
}

#[cfg(test)]
mod tests;
