//! Runs one test as a process in its own namespaces, with a time limit.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use guest_wire::{Record, TestOutcome};

/// Mounts `/run`, `/tmp` and `/sys` for the test, and brings `lo` up.
const SETUP: &str = "mount -t tmpfs run /run && mount -t tmpfs tmp /tmp && \
     mount -t sysfs sysfs /sys && ip link set lo up && \"$0\" \"$@\"";

const POLL_INTERVAL: Duration = Duration::from_millis(4);

/// Bytes of a failed test's output that are reported, from its end.
const OUTPUT_LIMIT: u64 = 48 * 1024;

pub(super) struct TestCase {
    binary: PathBuf,
    test: String,
}

impl TestCase {
    pub(super) fn new(binary: &Path, test: &str) -> Self {
        Self {
            binary: binary.to_owned(),
            test: test.to_owned(),
        }
    }

    /// Returns binary and path, by which tests are filtered.
    pub(super) fn name(&self) -> String {
        let binary = self.binary.file_name().unwrap_or_default();
        format!("{}::{}", binary.to_string_lossy(), self.test)
    }

    /// Returns whether no other test may run at the same time.
    pub(super) fn is_alone(&self) -> bool {
        self.test.contains("alone")
    }

    pub(super) fn run(&self, limit: Duration) -> Record {
        let began = Instant::now();
        let (outcome, output) = self.attempt(limit).unwrap_or_else(|error| {
            let output = format!("the test could not be run: {error}");
            (TestOutcome::Failed, output)
        });
        Record::Test {
            name: self.name(),
            outcome,
            milliseconds: u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX),
            output: match outcome {
                TestOutcome::Passed => String::new(),
                TestOutcome::Failed | TestOutcome::TimedOut => output,
            },
        }
    }

    fn attempt(&self, limit: Duration) -> std::io::Result<(TestOutcome, String)> {
        let said = std::env::temp_dir().join(format!("{:?}", std::thread::current().id()));
        let mut output = File::options()
            .create(true)
            .truncate(true)
            .read(true)
            .write(true)
            .open(said)?;
        let mut child = self.start(&output)?;
        let Some(status) = wait(&mut child, limit)? else {
            child.kill()?;
            child.wait()?;
            let text = format!("{}\nkilled after {limit:?}", tail(&mut output)?);
            return Ok((TestOutcome::TimedOut, text));
        };
        let text = tail(&mut output)?;
        // A test that exits early, or a name that matches no test, also has status 0.
        if status.success() && text.contains("test result: ok. 1 passed") {
            Ok((TestOutcome::Passed, text))
        } else {
            Ok((TestOutcome::Failed, format!("{text}\n{status}")))
        }
    }

    fn start(&self, output: &File) -> std::io::Result<Child> {
        Command::new("unshare")
            .args([
                "--net",
                "--mount",
                "--pid",
                "--fork",
                "--kill-child",
                "--mount-proc",
            ])
            .args(["sh", "-c", SETUP])
            .arg(&self.binary)
            .args(["--exact", &self.test, "--nocapture", "--include-ignored"])
            .env("RUST_BACKTRACE", "1")
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output.try_clone()?)
            .spawn()
    }
}

/// Waits for the child; returns `None` if it does not exit within `limit`.
fn wait(child: &mut Child, limit: Duration) -> std::io::Result<Option<ExitStatus>> {
    let deadline = Instant::now() + limit;
    while Instant::now() < deadline {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        std::thread::sleep(POLL_INTERVAL);
    }
    child.try_wait()
}

/// Reads the end of `file`.
fn tail(file: &mut File) -> std::io::Result<String> {
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(OUTPUT_LIMIT)))?;
    let mut text = Vec::new();
    file.read_to_end(&mut text)?;
    Ok(String::from_utf8_lossy(&text).trim_end().to_owned())
}
