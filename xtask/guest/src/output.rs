//! Writes to the two streams of this program: results to standard output, messages to standard error.

use std::io::Write as _;
use std::path::Path;

use anyhow::Context as _;
use guest_wire::Record;

/// Writes one line to standard output, which the host or another `guest` reads.
pub(crate) fn print(line: &str) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}").context("standard output is closed")?;
    Ok(out.flush()?)
}

/// Sends one record to the host.
pub(crate) fn print_record(record: &Record) -> anyhow::Result<()> {
    print(&record.to_line()?)
}

/// Writes one line to standard error, which the host shows on the terminal.
#[expect(clippy::print_stderr, reason = "a command-line program's own messages")]
pub(crate) fn log(text: &str) {
    eprintln!("{text}");
}

/// Returns the last lines of a log file.
pub(crate) fn tail(log: &Path) -> String {
    let text = std::fs::read_to_string(log).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    let end = lines.get(lines.len().saturating_sub(40)..);
    end.unwrap_or_default().join("\n")
}
