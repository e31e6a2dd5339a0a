//! Records the firewall marks of Service ports, so that a restart of the agent changes no mark.
//!
//! The file is beside the ownership record. A line gives a mark to a Service port (`+ 0x20001235 TCP shop/web http sum
//! 5f0c1a2b`; the name of the port may be empty) or takes it away (`- TCP shop/web http sum 77d1e09c`). It is written
//! before the nftables tables and IPVS use the mark. The last line about a port counts, and the last line about a mark.
//! A damaged line is ignored, and its port gets a mark as a new Service does. A record of another boot is void, because
//! the kernel's tables were lost.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};

use topology_core::model::{ObjectName, Protocol};
use topology_core::snapshot::MarkedPort;

use crate::crash_point::CrashPoint;
use crate::hash::fnv1a;
use crate::ownership::journal::Journal;

const FILE: &str = "marks";
const HEADER: &str = "ipvs-topo marks 1 boot ";

/// The open record.
#[derive(Debug)]
pub struct MarkRecord {
    path: PathBuf,
    header: String,
    /// `None` after a failure: then the next change writes all marks.
    journal: Option<Journal>,
}

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
        let text = Journal::read(&directory.join(FILE))?;
        Ok(Self::parse(&text, boot))
    }

    /// Parses the text of the file.
    fn parse(text: &str, boot: &str) -> Self {
        let mut lines = text.split_inclusive('\n');
        let header = lines.next().unwrap_or_default().trim_end();
        if header.strip_prefix(HEADER) != Some(boot) {
            return Self::default();
        }
        let mut holders = Holders::default();
        let mut damaged = 0;
        for line in lines {
            match parse_line(line) {
                Some((port, Some(mark))) => holders.give(port, mark),
                Some((port, None)) => holders.take(&port),
                None => damaged += 1,
            }
        }
        Self {
            marks: holders.by_port.into_iter().collect(),
            damaged,
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
        let mut record = Self {
            path: directory.join(FILE),
            header: format!("{HEADER}{boot}"),
            journal: None,
        };
        let saved = record.load(boot);
        (record, saved)
    }

    fn load(&mut self, boot: &str) -> io::Result<SavedMarks> {
        let text = Journal::read(&self.path)?;
        let saved = SavedMarks::parse(&text, boot);
        let fresh = || all_lines(saved.marks.iter().cloned());
        let live = saved.marks.len();
        self.journal = Some(Journal::open(&self.path, &self.header, &text, live, fresh)?);
        Ok(saved)
    }

    /// Records marks that are allocated or released. `held` iterates over all marks, including these, in case the file
    /// is rewritten. After an error the file has the earlier marks, and the next change writes all.
    pub fn save(
        &mut self,
        changed: &[(MarkedPort, Option<u32>)],
        held: &mut dyn Iterator<Item = (MarkedPort, u32)>,
        crash_point: &CrashPoint,
    ) -> io::Result<()> {
        let written = match &mut self.journal {
            Some(journal) if !journal.needs_rewrite() => {
                journal.append(&lines(changed.iter().cloned()), crash_point)
            }
            Some(_) | None => self.rewrite(held),
        };
        if written.is_err() {
            self.journal = None;
        }
        written
    }

    /// Replaces the file by one with exactly these marks.
    fn rewrite(&mut self, held: &mut dyn Iterator<Item = (MarkedPort, u32)>) -> io::Result<()> {
        let text = all_lines(held);
        self.journal = Some(Journal::create(&self.path, &self.header, &text)?);
        Ok(())
    }
}

fn all_lines(marks: impl Iterator<Item = (MarkedPort, u32)>) -> String {
    lines(marks.map(|(port, mark)| (port, Some(mark))))
}

fn lines(marks: impl Iterator<Item = (MarkedPort, Option<u32>)>) -> String {
    marks.fold(String::new(), |mut text, (port, mark)| {
        let words = mark_text(&port, mark);
        // Writing to a `String` fails only if `Display` does; `Display` of a number does not.
        let _written = writeln!(text, "{words} sum {:08x}", fnv1a(&words));
        text
    })
}

fn mark_text(port: &MarkedPort, mark: Option<u32>) -> String {
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

/// Parses a line, with its newline: the port, and its mark if it gets one.
fn parse_line(line: &str) -> Option<(MarkedPort, Option<u32>)> {
    let (words, sum) = line.strip_suffix('\n')?.rsplit_once(" sum ")?;
    let same = sum == format!("{:08x}", fnv1a(words));
    let (sign, words) = words.split_once(' ').filter(|_| same)?;
    match sign {
        "+" => {
            let (mark, words) = words.split_once(' ')?;
            let mark = u32::from_str_radix(mark.strip_prefix("0x")?, 16).ok()?;
            Some((parse_port(words)?, Some(mark)))
        }
        "-" => Some((parse_port(words)?, None)),
        _ => None,
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

/// Checks that a record of the parsed marks parses to the same. Lines without a checksum get one.
#[cfg(fuzzing)]
pub fn fuzz(text: &str) {
    let with_sum = |line: &str| match line.contains(" sum ") {
        true => format!("{line}\n"),
        false => format!("{line} sum {:08x}\n", fnv1a(line)),
    };
    let all: String = text.lines().map(with_sum).collect();
    let SavedMarks { marks, .. } = SavedMarks::parse(&format!("{HEADER}b\n{all}"), "b");
    let text = format!("{HEADER}b\n{}", all_lines(marks.iter().cloned()));
    let again = SavedMarks::parse(&text, "b");
    assert_eq!(again, SavedMarks { marks, damaged: 0 });
}

#[cfg(test)]
mod tests;
