//! Defines the lines with which a QEMU guest reports to its host.
//!
//! A guest has one serial port for its job, for text and for records. A *record* is one line that begins with the record
//! separator (RFC 7464) and continues as JSON. Every other line is text to print.
//!
//! This crate never does I/O.

#![forbid(unsafe_code)]
#![allow(missing_docs, reason = "guest, testbed and xtask are the only users")]

mod demo;
pub mod proc_ip_vs;
mod proxy;
pub mod report;
mod request_counts;
mod service_type;
mod view;

use serde::{Deserialize, Serialize};

pub use demo::{ClusterChange, Distribution, EndpointHits, LoadSummary};
pub use proxy::ProxyKind;
pub use request_counts::RequestCounts;
pub use service_type::ServiceType;
pub use view::{AnswerView, Endpoint, View};

/// The first byte of a record: RS of RFC 7464.
pub const SEPARATOR: char = '\u{1e}';

/// A report of a guest.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Record {
    /// The number of tests that a suite will run. Sent once, before the first [`Record::Test`].
    Plan { tests: usize },
    Test {
        /// Binary and path.
        name: String,
        outcome: TestOutcome,
        milliseconds: u64,
        /// The output, if it failed.
        output: String,
    },
    /// The suite ended. Sent once; without it, the suite has crashed.
    End { passed: usize, failed: usize },
    /// The demo begins something that takes a while.
    Progress { text: String },
    /// The demo measured to which endpoints connections go, at the start and after each [`Record::Change`].
    Distribution(Distribution),
    /// The demo changed the cluster, and the kernel has followed.
    Change(ClusterChange),
    /// The demo asked DNS for the name of a headless Service on several nodes, and connected to the answers.
    NameAnswers {
        /// One for each client.
        answers: Vec<Distribution>,
    },
    /// The output of an independent program.
    CommandOutput {
        /// The command line.
        command: String,
        text: String,
    },
    /// Requests that the host reads the CPU time that it has given to the guest. A measurement lies between two marks.
    Mark,
    /// The readings of `guest bench all`, sent once.
    Report(Box<report::Report>),
    /// The readings of `guest bench proxy`, sent once.
    Proxy(Box<report::ProxyReport>),
    /// The job ended. The last record of every guest.
    Exit { status: i32 },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TestOutcome {
    /// Its process exited with status 0.
    Passed,
    Failed,
    /// It exceeded its time limit and was killed.
    TimedOut,
}

impl Record {
    /// Returns the line of this record, without the newline.
    ///
    /// # Errors
    /// None for the records above: serialization fails only for maps with keys that are no strings.
    pub fn to_line(&self) -> serde_json::Result<String> {
        Ok(format!("{SEPARATOR}{}", serde_json::to_string(self)?))
    }
}

/// One parsed line of a guest's job.
#[derive(Debug, Clone, PartialEq)]
pub enum Line {
    /// Text to print.
    Text(String),
    /// A record, and the text before it on the same line, if any.
    Record(Option<String>, Record),
    /// A line that begins as a record and cannot be parsed: the guest was stopped, or two writers wrote at the same time.
    /// It never counts as success.
    Broken(String),
}

impl Line {
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
