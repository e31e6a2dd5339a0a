//! The lines in which a QEMU guest tells its host what happened.
//!
//! A guest has one serial port for its job. What a person reads and what the host reads share it:
//! a *record* is one line that begins with the record separator (RFC 7464) and goes on as JSON;
//! everything else is text to be shown.
//!
//! This crate never does I/O.

#![forbid(unsafe_code)]

mod demo;
mod proxy;
pub mod report;
pub mod table;
mod tally;
mod view;

use serde::{Deserialize, Serialize};

pub use demo::{Change, Load, Picture, Server};
pub use proxy::ProxyKind;
pub use tally::Tally;
pub use view::{Endpoint, View};

/// The byte a record begins with: RS, as in RFC 7464.
pub const SEPARATOR: char = '\u{1e}';

/// Something that happened in a guest.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Record {
    /// A suite is about to run that many tests. Comes once, before the first [`Record::Test`].
    Plan {
        /// How many.
        tests: usize,
    },
    /// A test ended.
    Test {
        /// The test's name: binary and path.
        name: String,
        /// How it ended.
        outcome: Outcome,
        /// How long it took.
        milliseconds: u64,
        /// What it wrote, when it failed.
        output: String,
    },
    /// The suite ended. Comes once; a suite without it has crashed.
    End {
        /// How many tests passed.
        passed: usize,
        /// How many did not.
        failed: usize,
    },
    /// The demo is busy with something that takes a while.
    Progress {
        /// With what.
        text: String,
    },
    /// The demo measured where connections go. Comes after the [`Record::Change`] it follows from.
    Picture(Picture),
    /// The demo changed the cluster and saw the kernel follow.
    Change(Change),
    /// What a program that knows nothing of us says, word for word.
    Proof {
        /// The command a person would type.
        command: String,
        /// What it printed.
        text: String,
    },
    /// The host is to note how long it has run the guest's processors: what is measured lies between two of these.
    Mark,
    /// What was measured; once, by `guest bench all`.
    Report(Box<report::Report>),
    /// What was measured of one node proxy; once, by `guest bench rival`.
    Rival(Box<report::Rival>),
    /// The job ended; the last record of every guest.
    Exit {
        /// Its exit status.
        status: i32,
    },
}

/// How a test ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// Its process ended with status 0.
    Passed,
    /// Its process ended otherwise.
    Failed,
    /// It did not end in time and was killed.
    TimedOut,
}

impl Record {
    /// The line of this record, without the newline.
    ///
    /// # Errors
    /// Never for the records above; JSON's writer says so only for maps with odd keys.
    pub fn to_line(&self) -> serde_json::Result<String> {
        Ok(format!("{SEPARATOR}{}", serde_json::to_string(self)?))
    }
}

/// One line of a guest's job, told apart.
#[derive(Debug, Clone, PartialEq)]
pub enum Line {
    /// Text to be shown.
    Text(String),
    /// A record, and the text that stood before it on the same line, if any.
    Record(Option<String>, Record),
    /// A line that begins as a record and cannot be read: the guest was cut short or two writers
    /// met. Never to be taken for success.
    Broken(String),
}

impl Line {
    /// Tells what `line` is.
    pub fn parse(line: &str) -> Self {
        let Some((before, json)) = line.split_once(SEPARATOR) else {
            return Self::Text(line.to_owned());
        };
        let before = (!before.is_empty()).then(|| before.to_owned());
        match serde_json::from_str(json) {
            Ok(record) => Self::Record(before, record),
            Err(_) => Self::Broken(line.to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_survives_the_line_even_behind_text_without_a_newline() {
        let record = Record::End {
            passed: 3,
            failed: 0,
        };
        let line = format!("half a line{}", record.to_line().unwrap());
        assert_eq!(
            Line::parse(&line),
            Line::Record(Some("half a line".to_owned()), record)
        );
    }

    #[test]
    fn a_record_cut_short_is_broken_not_text() {
        assert_eq!(
            Line::parse("\u{1e}{\"event\":\"end\",\"passed\":3"),
            Line::Broken("\u{1e}{\"event\":\"end\",\"passed\":3".to_owned())
        );
    }

    #[test]
    fn the_shells_own_exit_line_is_a_record() {
        assert_eq!(
            Line::parse("\u{1e}{\"event\":\"exit\",\"status\":7}"),
            Line::Record(None, Record::Exit { status: 7 })
        );
    }
}
