//! Records when draining real servers are deleted, so that a restart of the agent changes no
//! deadline.
//!
//! The file is beside the ownership record. A line sets the deadline of a real server (`+ -t
//! 10.96.0.10:80 -r 10.244.1.7:8080 until 93784210 sum 5f0c1a2b`, milliseconds since boot) or clears
//! it (`- -t 10.96.0.10:80 -r 10.244.1.7:8080 sum 77d1e09c`). The deadline is written before the
//! weight is set to 0, and cleared after the real server is deleted or has its weight again. So the
//! last line of a real server with weight 0 in the kernel is its deadline; lines of other real
//! servers have no meaning. A damaged line is ignored, and a real server without a deadline gets the
//! full drain time again.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;

use topology_core::plan::Deadline;
use topology_core::virtual_server::VirtualServerKey;

use crate::crash_point::CrashPoint;
use crate::ownership::checked_record::{CheckedRecord, LineFormat, ParsedLines};
use crate::ownership::record::parse_key;

/// The open record.
#[derive(Debug)]
pub struct Draining(CheckedRecord<DeadlineLine>);

/// A deadline that begins or ends.
#[derive(Debug)]
struct DeadlineLine;

/// The contents of the record when it was opened.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Deadlines {
    held: BTreeMap<(VirtualServerKey, IpAddr, u16), u64>,
    /// Lines that could not be parsed (a torn last line, a manual edit).
    pub damaged: usize,
}

impl Deadlines {
    /// Iterates over all deadlines.
    pub fn iter(&self) -> impl Iterator<Item = Deadline> {
        self.held
            .iter()
            .map(|((key, address, port), until)| Deadline {
                key: *key,
                address: *address,
                port: *port,
                until: Some(*until),
            })
    }

    fn after(lines: ParsedLines<Deadline>) -> Self {
        let mut deadlines = Self {
            damaged: lines.damaged,
            ..Self::default()
        };
        for deadline in lines.entries {
            let real = (deadline.key, deadline.address, deadline.port);
            match deadline.until {
                Some(until) => drop(deadlines.held.insert(real, until)),
                None => drop(deadlines.held.remove(&real)),
            }
        }
        deadlines
    }
}

impl Draining {
    /// Opens or creates the record in `directory`, which exists; `boot` is the kernel's boot id.
    /// After an error the next change tries again.
    pub fn open(directory: &Path, boot: &str) -> (Self, io::Result<Deadlines>) {
        let mut record = CheckedRecord::new(directory, boot);
        let deadlines = record.open(Deadlines::after, |deadlines| deadlines.iter().collect());
        (Self(record), deadlines)
    }

    /// Records deadlines that begin or end. `held` iterates over all deadlines, including these, in
    /// case the file is rewritten.
    pub fn save(
        &mut self,
        changed: &[Deadline],
        held: &mut dyn Iterator<Item = Deadline>,
        crash_point: &CrashPoint,
    ) -> io::Result<()> {
        let written = self.0.save(changed, || held.collect(), crash_point);
        if written.is_err() {
            // An old deadline must not be taken for one that could not be written.
            self.0.delete();
        }
        written
    }
}

impl LineFormat for DeadlineLine {
    const FILE: &'static str = "draining";
    type Entry = Deadline;

    fn print(deadline: &Deadline) -> String {
        let Deadline {
            key,
            address,
            port,
            until,
        } = deadline;
        let real = SocketAddr::new(*address, *port);
        match until {
            Some(until) => format!("+ {key} -r {real} until {until}"),
            None => format!("- {key} -r {real}"),
        }
    }

    fn parse(words: &str) -> Option<Deadline> {
        let (words, until) = match words.split_at_checked(2)? {
            ("+ ", rest) => {
                let (rest, until) = rest.rsplit_once(" until ")?;
                (rest, Some(until.parse().ok()?))
            }
            ("- ", rest) => (rest, None),
            _ => return None,
        };
        let (key, real) = words.split_once(" -r ")?;
        let real: SocketAddr = real.parse().ok()?;
        Some(Deadline {
            key: parse_key(key)?,
            address: real.ip(),
            port: real.port(),
            until,
        })
    }
}

/// Checks that a record of the parsed deadlines parses to the same.
#[cfg(fuzzing)]
pub fn fuzz(text: &str) {
    use crate::ownership::checked_record::{parse_fuzzed, reparse};
    let of = |entries| {
        Deadlines::after(ParsedLines {
            entries,
            damaged: 0,
        })
    };
    let deadlines = of(parse_fuzzed::<DeadlineLine>(text));
    let all: Vec<Deadline> = deadlines.iter().collect();
    assert_eq!(of(reparse::<DeadlineLine>(&all)), deadlines);
}

#[cfg(test)]
mod tests;
