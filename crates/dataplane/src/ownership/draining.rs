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
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

use topology_core::plan::Deadline;
use topology_core::virtual_server::VirtualServerKey;

use crate::crash_point::CrashPoint;
use crate::hash::fnv1a;
use crate::ownership::journal::Journal;
use crate::ownership::record::parse_key;

const FILE: &str = "draining";
const HEADER: &str = "ipvs-topo draining 1 boot ";

/// The open record.
#[derive(Debug)]
pub struct Draining {
    path: PathBuf,
    header: String,
    /// `None` after a failure: then the file does not exist, and the next change writes all
    /// deadlines.
    journal: Option<Journal>,
}

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

    /// Parses the text of the file.
    pub fn parse(text: &str, boot: &str) -> Self {
        let mut deadlines = Self::default();
        let mut lines = text.split_inclusive('\n');
        let header = lines.next().unwrap_or_default().trim_end();
        if header.strip_prefix(HEADER) != Some(boot) {
            return deadlines;
        }
        for line in lines {
            let Some(deadline) = parse_line(line) else {
                deadlines.damaged += 1;
                continue;
            };
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
        let mut record = Self {
            path: directory.join(FILE),
            header: format!("{HEADER}{boot}"),
            journal: None,
        };
        let deadlines = record.load(boot);
        (record, deadlines)
    }

    fn load(&mut self, boot: &str) -> io::Result<Deadlines> {
        let text = Journal::read(&self.path)?;
        let deadlines = Deadlines::parse(&text, boot);
        let (live, fresh) = (deadlines.held.len(), || lines(deadlines.iter()));
        self.journal = Some(Journal::open(&self.path, &self.header, &text, live, fresh)?);
        Ok(deadlines)
    }

    /// Records deadlines that begin or end. `held` iterates over all deadlines, including these, in
    /// case the file is rewritten.
    pub fn save(
        &mut self,
        changed: &[Deadline],
        held: &mut dyn Iterator<Item = Deadline>,
        crash_point: &CrashPoint,
    ) -> io::Result<()> {
        let written = match &mut self.journal {
            Some(journal) if !journal.needs_rewrite() => {
                journal.append(&lines(changed.iter().copied()), crash_point)
            }
            Some(_) | None => self.rewrite(held),
        };
        if written.is_err() {
            // An old deadline must not be taken for one that could not be written.
            self.journal = None;
            drop(fs::remove_file(&self.path));
        }
        written
    }

    fn rewrite(&mut self, held: &mut dyn Iterator<Item = Deadline>) -> io::Result<()> {
        self.journal = Some(Journal::create(&self.path, &self.header, &lines(held))?);
        Ok(())
    }
}

fn lines(deadlines: impl Iterator<Item = Deadline>) -> String {
    deadlines.fold(String::new(), |mut text, deadline| {
        let words = deadline_text(&deadline);
        // Writing to a `String` fails only if `Display` does; `Display` of a number does not.
        let _written = writeln!(text, "{words} sum {:08x}", fnv1a(&words));
        text
    })
}

fn deadline_text(deadline: &Deadline) -> String {
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

/// Parses a line, with its newline.
fn parse_line(line: &str) -> Option<Deadline> {
    let (words, sum) = line.strip_suffix('\n')?.rsplit_once(" sum ")?;
    let same = sum == format!("{:08x}", fnv1a(words));
    let (words, until) = match words.split_at_checked(2).filter(|_| same)? {
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

/// Checks that a record of the parsed deadlines parses to the same. Lines without a checksum get
/// one.
#[cfg(fuzzing)]
pub fn fuzz(text: &str) {
    let with_sum = |line: &str| match line.contains(" sum ") {
        true => format!("{line}\n"),
        false => format!("{line} sum {:08x}\n", fnv1a(line)),
    };
    let all: String = text.lines().map(with_sum).collect();
    let Deadlines { held, .. } = Deadlines::parse(&format!("{HEADER}b\n{all}"), "b");
    let deadlines = Deadlines { held, damaged: 0 };
    let text = format!("{HEADER}b\n{}", lines(deadlines.iter()));
    assert_eq!(Deadlines::parse(&text, "b"), deadlines);
}

#[cfg(test)]
mod tests;
