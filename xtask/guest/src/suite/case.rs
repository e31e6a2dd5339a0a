//! One test: a process in namespaces of its own, with a time limit.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use guest_wire::{Outcome, Record};

/// What a test finds: its own `/run`, `/tmp` and `/sys`, and `lo` up.
const SURROUNDINGS: &str = "mount -t tmpfs run /run && mount -t tmpfs tmp /tmp && \
     mount -t sysfs sysfs /sys && ip link set lo up && \"$0\" \"$@\"";

/// How often a running test is looked at.
const GLANCE: Duration = Duration::from_millis(4);

/// The most of a failed test's output that is told, in bytes: the end of it.
const OUTPUT_LIMIT: u64 = 48 * 1024;

/// One test of one binary.
pub(super) struct Case {
    binary: PathBuf,
    test: String,
}

impl Case {
    /// The test `test` of `binary`.
    pub(super) fn new(binary: &Path, test: &str) -> Self {
        Self {
            binary: binary.to_owned(),
            test: test.to_owned(),
        }
    }

    /// Binary and path, as people read and filter them.
    pub(super) fn name(&self) -> String {
        let binary = self.binary.file_name().unwrap_or_default();
        format!("{}::{}", binary.to_string_lossy(), self.test)
    }

    /// Whether nothing else may run meanwhile: `alone` is part of its path.
    pub(super) fn is_alone(&self) -> bool {
        self.test.contains("alone")
    }

    /// Runs the test.
    pub(super) fn run(&self, limit: Duration) -> Record {
        let began = Instant::now();
        let (outcome, output) = self.attempt(limit).unwrap_or_else(|error| {
            let output = format!("the test could not be run: {error}");
            (Outcome::Failed, output)
        });
        Record::Test {
            name: self.name(),
            outcome,
            milliseconds: u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX),
            output: match outcome {
                Outcome::Passed => String::new(),
                Outcome::Failed | Outcome::TimedOut => output,
            },
        }
    }

    fn attempt(&self, limit: Duration) -> std::io::Result<(Outcome, String)> {
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
            return Ok((Outcome::TimedOut, text));
        };
        let text = tail(&mut output)?;
        // A test that ends the process early, or a name that matches nothing, exits with 0 too.
        if status.success() && text.contains("test result: ok. 1 passed") {
            Ok((Outcome::Passed, text))
        } else {
            Ok((Outcome::Failed, format!("{text}\n{status}")))
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
            .args(["sh", "-c", SURROUNDINGS])
            .arg(&self.binary)
            .args(["--exact", &self.test, "--nocapture", "--include-ignored"])
            .env("RUST_BACKTRACE", "1")
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output.try_clone()?)
            .spawn()
    }
}

/// How the child ended, or `None` when it did not within `limit`.
fn wait(child: &mut Child, limit: Duration) -> std::io::Result<Option<ExitStatus>> {
    let deadline = Instant::now() + limit;
    while Instant::now() < deadline {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        std::thread::sleep(GLANCE);
    }
    child.try_wait()
}

/// The end of what was written to `file`.
fn tail(file: &mut File) -> std::io::Result<String> {
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(OUTPUT_LIMIT)))?;
    let mut text = Vec::new();
    file.read_to_end(&mut text)?;
    Ok(String::from_utf8_lossy(&text).trim_end().to_owned())
}
