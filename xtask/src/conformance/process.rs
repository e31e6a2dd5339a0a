//! Runs one process of `e2e.test`, and reads from its output which test has ended.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::mpsc::Sender;

use anyhow::{Context as _, ensure};
use serde::Deserialize;

use super::junit::{CaseOutcome, Verdict};

/// Marks the lines of the program that this command reads.
const PROGRESS: &str = "conformance: ";

/// A process that has not started.
pub(super) struct TestProcess {
    pub(super) command: Command,
    /// The file for its whole output.
    pub(super) log: PathBuf,
}

/// A test that has ended.
#[derive(Debug, PartialEq)]
pub(super) struct EndedTest {
    pub(super) name: String,
    pub(super) outcome: CaseOutcome,
}

/// A test that has ended, as the program prints it.
#[derive(Deserialize)]
struct PrintedTest {
    name: String,
    state: String,
    seconds: f64,
    message: String,
}

impl TestProcess {
    /// Runs it to its end, and sends each test that ends.
    pub(super) fn run(mut self, each: &Sender<EndedTest>) -> anyhow::Result<()> {
        let (reader, writer) = std::io::pipe()?;
        self.command.stdin(Stdio::null());
        self.command.stdout(writer.try_clone()?).stderr(writer);
        let mut child = self.command.spawn().context("cannot start e2e.test")?;
        // It owns writers of the pipe: the reader sees the end only after they are dropped.
        drop(self.command);
        let file = self.log.display();
        let mut log = File::create(&self.log).with_context(|| format!("cannot write {file}"))?;
        let mut count = 0;
        for line in BufReader::new(reader).split(b'\n') {
            let mut line = line?;
            if let Some(ended) = ended(&line) {
                each.send(ended)?;
                count += 1;
            }
            line.push(b'\n');
            log.write_all(&line)?;
        }
        // Its status only repeats the results.
        let status = child.wait()?;
        ensure!(count > 0, "e2e.test ran no test ({status}): see {file}");
        Ok(())
    }
}

/// Parses a line about a test that has ended.
fn ended(line: &[u8]) -> Option<EndedTest> {
    let json = line.strip_prefix(PROGRESS.as_bytes())?;
    let test: PrintedTest = serde_json::from_slice(json).ok()?;
    let outcome = CaseOutcome {
        verdict: Verdict::of(&test.state),
        seconds: test.seconds,
        reason: test.message.trim().to_owned(),
    };
    Some(EndedTest {
        name: test.name,
        outcome,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_program_is_the_outcome_of_a_test_and_other_lines_are_not() {
        let line = br#"conformance: {"name":"[sig-network] a","state":"panicked","seconds":1.5,"message":"no\n"}"#;
        let outcome = CaseOutcome {
            verdict: Verdict::Failed,
            seconds: 1.5,
            reason: "no".to_owned(),
        };
        let name = "[sig-network] a".to_owned();
        assert_eq!(ended(line), Some(EndedTest { name, outcome }));
        assert_eq!(ended(b"I1125 conformance: {}"), None);
        assert_eq!(ended(b"conformance: soon"), None);
    }
}
