//! Runs command lines, and waits for their effects.

use std::io::Write as _;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// The longest wait. A guest without KVM is slow.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);

/// Runs a command line and returns its output; it must succeed.
pub(crate) fn sh(line: &str) -> String {
    let output = run("sh", &["-c", line]);
    assert!(
        output.status.success(),
        "{line}: {}{}",
        text(&output.stdout),
        text(&output.stderr)
    );
    text(&output.stdout)
}

/// Runs a command line and returns whether it succeeded.
pub(crate) fn succeeds(line: &str) -> bool {
    run("sh", &["-c", line]).status.success()
}

fn run(program: &str, arguments: &[&str]) -> Output {
    let output = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .output();
    output.unwrap_or_else(|error| panic!("{program}: {error}"))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Runs lines of `ip`, without that word, in one process, because processes start slowly in a
/// guest.
pub(super) fn ip(options: &[&str], lines: &str) {
    let output = batch(options, lines);
    let error = text(&output.stderr);
    assert!(output.status.success(), "ip {options:?}: {lines}: {error}");
}

pub(super) fn batch(options: &[&str], lines: &str) -> Output {
    let mut child = Command::new("ip")
        .args(options)
        .args(["-batch", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("ip: {error}"));
    let mut input = child.stdin.take().expect("asked for");
    input.write_all(lines.as_bytes()).expect("ip reads");
    drop(input);
    child.wait_with_output().expect("our own child")
}

/// Waits until `done` returns true; `what` is for the panic message.
pub(crate) fn wait_until(what: &str, done: impl FnMut() -> bool) {
    wait_within(PATIENCE, what, done);
}

/// Waits for at most `limit`.
///
/// Polling takes at most half of the time. Most checks start a program, and the tested programs
/// need the processor, too.
pub(crate) fn wait_within(limit: Duration, what: &str, mut done: impl FnMut() -> bool) {
    let start = Instant::now();
    loop {
        let look = Instant::now();
        if done() {
            return;
        }
        assert!(start.elapsed() < limit, "waited {limit:?} for: {what}");
        std::thread::sleep(look.elapsed().max(Duration::from_millis(20)));
    }
}
