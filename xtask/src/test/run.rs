//! Runs one command, keeps its output and prints its progress.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use testbed::paths;

use crate::tools::{self, Tool};

/// Interval of progress lines.
const HEARTBEAT: Duration = Duration::from_secs(30);

/// The result of a command.
pub(super) struct CommandResult {
    pub(super) success: bool,
    /// Its stdout and stderr, in order of arrival.
    pub(super) output: String,
}

/// Runs a tool in the root of the tree, and installs it first if it is missing.
pub(super) fn run_tool(tool: &Tool, arguments: &[&str]) -> CommandResult {
    match tools::program(tool) {
        Ok(program) => {
            let mut command = Command::new(program);
            command.current_dir(paths::root()).args(arguments);
            run(command)
        }
        Err(error) => CommandResult {
            success: false,
            output: format!("{error:#}\n"),
        },
    }
}

/// Runs a command. A command that cannot be started is a failure with the reason as output.
pub(super) fn run(command: Command) -> CommandResult {
    let program = command.get_program().to_string_lossy().into_owned();
    try_run(command).unwrap_or_else(|error| CommandResult {
        success: false,
        output: format!("`{program}` could not be started: {error}\n"),
    })
}

fn try_run(mut command: Command) -> std::io::Result<CommandResult> {
    let (reader, writer) = std::io::pipe()?;
    let mut child = command
        .stdin(Stdio::null())
        .stdout(writer.try_clone()?)
        .stderr(writer)
        .spawn()?;
    // The command owns writers of the pipe: the reader sees the end only after they are dropped.
    drop(command);
    let (sender, lines) = mpsc::channel();
    let reading = std::thread::spawn(move || {
        let mut reader = BufReader::new(reader);
        let mut line = Vec::new();
        while matches!(reader.read_until(b'\n', &mut line), Ok(count) if count > 0) {
            if sender
                .send(String::from_utf8_lossy(&line).into_owned())
                .is_err()
            {
                break;
            }
            line.clear();
        }
    });
    let output = collect(&lines);
    let success = child.wait()?.success();
    // The thread exits at the end of the pipe; a panic in it would end `collect` early.
    let success = success && reading.join().is_ok();
    Ok(CommandResult { success, output })
}

/// Collects lines until the command exits, and prints a progress line at intervals.
fn collect(lines: &mpsc::Receiver<String>) -> String {
    let started = Instant::now();
    let mut next = HEARTBEAT;
    let mut output = String::new();
    loop {
        match lines.recv_timeout(next.saturating_sub(started.elapsed())) {
            Ok(line) => output.push_str(&line),
            Err(RecvTimeoutError::Timeout) => {
                let last = output.lines().next_back().unwrap_or("no output yet");
                let seconds = started.elapsed().as_secs();
                anstream::println!(
                    "test:   still running after {seconds} s: {}",
                    shortened(last)
                );
                next += HEARTBEAT;
            }
            Err(RecvTimeoutError::Disconnected) => return output,
        }
    }
}

/// Shortens a line to 100 characters.
fn shortened(line: &str) -> String {
    let line = line.trim();
    match line.char_indices().nth(100) {
        Some((end, _)) => format!("{}...", line.get(..end).unwrap_or(line)),
        None => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sh(script: &str) -> CommandResult {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        run(command)
    }

    #[test]
    fn both_streams_are_kept_in_order_and_failure_is_seen() {
        let finished = sh("echo one; echo two >&2; echo three; exit 3");
        assert!(!finished.success);
        assert_eq!(finished.output, "one\ntwo\nthree\n");
    }

    #[test]
    fn a_command_that_does_not_exist_fails_with_the_reason() {
        let finished = run(Command::new("/nonexistent/program"));
        assert!(!finished.success);
        let words = "`/nonexistent/program` could not be started: ";
        assert!(finished.output.starts_with(words), "{}", finished.output);
    }

    #[test]
    fn a_long_line_is_shortened_for_the_sign_of_life() {
        assert_eq!(
            shortened(&"ä".repeat(150)),
            format!("{}...", "ä".repeat(100))
        );
        assert_eq!(shortened(" short \n"), "short");
    }
}
