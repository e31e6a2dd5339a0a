//! A record whose lines have checksums: `+ 0x20001235 TCP shop/web http sum 5f0c1a2b`.
//!
//! A line that was torn or edited is damaged, and has no meaning. After a failed write the next one replaces the file.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::marker::PhantomData;
use std::path::{Path, PathBuf};

use crate::crash_point::CrashPoint;
use crate::hash::fnv1a;
use crate::ownership::journal::Journal;

/// The lines of a record.
pub(super) trait LineFormat {
    /// The name of the file, which is also in its first line.
    const FILE: &'static str;
    /// The contents of a line.
    type Entry;
    /// Prints the line without its checksum.
    fn print(entry: &Self::Entry) -> String;
    /// Parses the line without its checksum.
    fn parse(words: &str) -> Option<Self::Entry>;
}

/// The lines of a file, in its order.
#[derive(Debug)]
pub(super) struct ParsedLines<E> {
    pub(super) entries: Vec<E>,
    /// The number of lines that could not be parsed (a torn last line, a manual edit).
    pub(super) damaged: usize,
}

/// The open file.
#[derive(Debug)]
pub(super) struct CheckedRecord<F> {
    path: PathBuf,
    header: String,
    /// `None` after a failure: then the next write replaces the file.
    journal: Option<Journal>,
    format: PhantomData<F>,
}

impl<F: LineFormat> CheckedRecord<F> {
    /// The record in `directory`, not opened yet; `boot` is the kernel's boot id.
    pub(super) fn new(directory: &Path, boot: &str) -> Self {
        Self {
            path: directory.join(F::FILE),
            header: header::<F>(boot),
            journal: None,
            format: PhantomData,
        }
    }

    /// Reads the file without opening it for writing; empty if it does not exist or is of another boot.
    pub(super) fn read(&self) -> io::Result<ParsedLines<F::Entry>> {
        Ok(parse::<F>(&Journal::read(&self.path)?, &self.header))
    }

    /// Opens or creates the file, whose folder exists. `fold` gives the meaning of its lines, and `valid` the lines that
    /// are still needed. After an error the next write tries again.
    pub(super) fn open<T>(
        &mut self,
        fold: impl FnOnce(ParsedLines<F::Entry>) -> T,
        valid: impl FnOnce(&T) -> Vec<F::Entry>,
    ) -> io::Result<T> {
        let text = Journal::read(&self.path)?;
        let contents = fold(parse::<F>(&text, &self.header));
        let valid = valid(&contents);
        let fresh = || lines::<F>(&valid);
        let journal = Journal::open(&self.path, &self.header, &text, valid.len(), fresh)?;
        self.journal = Some(journal);
        Ok(contents)
    }

    /// Whether the file has everything that was saved.
    pub(super) fn is_complete(&self) -> bool {
        self.journal.is_some()
    }

    /// Appends `changed`, or replaces the file by one with the lines of `all` if most of it is obsolete.
    pub(super) fn save(
        &mut self,
        changed: &[F::Entry],
        all: impl FnOnce() -> Vec<F::Entry>,
        crash_point: &CrashPoint,
    ) -> io::Result<()> {
        let written = match &mut self.journal {
            Some(journal) if !journal.needs_rewrite() => {
                journal.append(&lines::<F>(changed), crash_point)
            }
            Some(_) | None => self.replace(&all()),
        };
        if written.is_err() {
            self.journal = None;
        }
        written
    }

    fn replace(&mut self, all: &[F::Entry]) -> io::Result<()> {
        let text = lines::<F>(all);
        self.journal = Some(Journal::create(&self.path, &self.header, &text)?);
        Ok(())
    }

    /// Deletes the file: the next write creates it.
    pub(super) fn delete(&mut self) {
        self.journal = None;
        // It may not exist.
        drop(fs::remove_file(&self.path));
    }

    #[cfg(test)]
    pub(super) fn forget_file(&mut self) {
        self.journal = None;
    }
}

/// The first line of a file.
pub(super) fn header<F: LineFormat>(boot: &str) -> String {
    format!("ipvs-topo {} 1 boot {boot}", F::FILE)
}

/// Parses the text of a file with this first line.
pub(super) fn parse<F: LineFormat>(text: &str, header: &str) -> ParsedLines<F::Entry> {
    let mut parsed = ParsedLines {
        entries: Vec::new(),
        damaged: 0,
    };
    let mut lines = text.split_inclusive('\n');
    if lines.next().unwrap_or_default().trim_end() != header {
        return parsed;
    }
    for line in lines {
        match parse_line::<F>(line) {
            Some(entry) => parsed.entries.push(entry),
            None => parsed.damaged += 1,
        }
    }
    parsed
}

/// Parses a line, with its newline.
pub(super) fn parse_line<F: LineFormat>(line: &str) -> Option<F::Entry> {
    let (words, sum) = line.strip_suffix('\n')?.rsplit_once(" sum ")?;
    let is_same = sum == format!("{:08x}", fnv1a(words));
    F::parse(Some(words).filter(|_| is_same)?)
}

/// Prints entries as lines.
pub(super) fn lines<F: LineFormat>(entries: &[F::Entry]) -> String {
    entries.iter().fold(String::new(), |mut text, entry| {
        let words = F::print(entry);
        // Writing to a `String` fails only if `Display` does; `Display` of a number does not.
        let _written = writeln!(text, "{words} sum {:08x}", fnv1a(&words));
        text
    })
}

/// The entries of a file that has `text` below its first line. Lines without a checksum get one.
#[cfg(fuzzing)]
pub(super) fn parse_fuzzed<F: LineFormat>(text: &str) -> Vec<F::Entry> {
    let with_sum = |line: &str| match line.contains(" sum ") {
        true => format!("{line}\n"),
        false => format!("{line} sum {:08x}\n", fnv1a(line)),
    };
    let all: String = text.lines().map(with_sum).collect();
    let header = header::<F>("b");
    parse::<F>(&format!("{header}\n{all}"), &header).entries
}

/// Checks that the file of these entries has no damaged line, and returns what it parses to.
#[cfg(fuzzing)]
pub(super) fn reparse<F: LineFormat>(entries: &[F::Entry]) -> Vec<F::Entry> {
    let header = header::<F>("b");
    let parsed = parse::<F>(&format!("{header}\n{}", lines::<F>(entries)), &header);
    assert_eq!(parsed.damaged, 0);
    parsed.entries
}
