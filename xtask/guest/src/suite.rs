//! Runs libtest binaries test by test and reports each result to the host.
//!
//! Every test is a process in its own network, mount and process namespaces: an empty IPVS table, `lo` up, empty `/run`
//! and `/tmp`. Everything that the test started ends with it. Two tests run at a time. Tests with `alone` in their path
//! (they load modules, or measure) run after the others, one at a time.
//!
//! The kernel keeps the virtual servers of all namespaces in one table (`ip_vs_svc_table`). A test that adds or removes
//! virtual servers disturbs another test's dump of more than one datagram. Tests with many virtual servers are
//! therefore `alone`, too.

mod test_case;

use std::collections::VecDeque;
use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::sync::Mutex;
use std::time::Duration;

use anyhow::{Context, bail};
use guest_wire::{Record, TestOutcome};

use test_case::TestCase;

use crate::output::print_record;

/// Concurrent tests: the guest has two processors.
const WORKERS: usize = 2;

/// Workers do not panic: the tests run in other processes.
const WORKER_GONE: &str = "a worker of the suite panicked";

/// Options of `guest suite`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The folder with the test binaries. Test names begin with the name of the binary.
    folder: PathBuf,
    /// Run only tests whose name contains this.
    #[arg(long)]
    filter: Option<String>,
    /// Skip tests whose name contains this; repeatable.
    #[arg(long, value_name = "WORD")]
    skip: Vec<String>,
    /// Time limit of a test in seconds.
    #[arg(long, default_value_t = 240)]
    limit: u64,
}

/// Runs the suite; fails when a test fails.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let wanted = |case: &TestCase| {
        let name = case.name();
        let filter = args.filter.as_deref().unwrap_or("");
        name.contains(filter) && !args.skip.iter().any(|word| name.contains(word))
    };
    let cases: Vec<TestCase> = list(&args.folder)?.into_iter().filter(wanted).collect();
    let host = HostConnection::default();
    host.send(&Record::Plan { tests: cases.len() })?;
    let (alone, together): (Vec<_>, Vec<_>) = cases.into_iter().partition(TestCase::is_alone);
    let limit = Duration::from_secs(args.limit);
    work(together, WORKERS, limit, &host)?;
    work(alone, 1, limit, &host)?;
    let (passed, failed) = host.counts();
    host.send(&Record::End { passed, failed })?;
    Ok(ExitCode::from(u8::from(failed > 0)))
}

/// Lists every test of every binary in `folder`.
fn list(folder: &PathBuf) -> anyhow::Result<Vec<TestCase>> {
    let mut binaries = std::fs::read_dir(folder)?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<std::io::Result<Vec<_>>>()?;
    binaries.sort();
    let mut cases = Vec::new();
    for binary in binaries {
        let listed = Command::new(&binary)
            .args(["--list", "--format", "terse"])
            .output()
            .with_context(|| format!("cannot start {}", binary.display()))?;
        if !listed.status.success() {
            bail!("{} cannot list its tests", binary.display());
        }
        cases.extend(
            String::from_utf8_lossy(&listed.stdout)
                .lines()
                .filter_map(|line| line.strip_suffix(": test"))
                .map(|test| TestCase::new(&binary, test)),
        );
    }
    Ok(cases)
}

/// Runs `cases`, `workers` at a time.
fn work(
    cases: Vec<TestCase>,
    workers: usize,
    limit: Duration,
    host: &HostConnection,
) -> anyhow::Result<()> {
    let queue = Mutex::new(VecDeque::from(cases));
    let next = || queue.lock().map_or(None, |mut queue| queue.pop_front());
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..workers)
            .map(|_| {
                scope.spawn(|| -> anyhow::Result<()> {
                    while let Some(case) = next() {
                        host.send(&case.run(limit))?;
                    }
                    Ok(())
                })
            })
            .collect();
        for worker in workers {
            match worker.join() {
                Ok(result) => result?,
                Err(_panic) => bail!(WORKER_GONE),
            }
        }
        Ok(())
    })
}

/// The host at the other end of the serial port, and the results that it has received.
#[derive(Default)]
struct HostConnection {
    counts: Mutex<(usize, usize)>,
}

impl HostConnection {
    /// Writes a record as one line, and counts it.
    fn send(&self, record: &Record) -> anyhow::Result<()> {
        let Ok(mut counts) = self.counts.lock() else {
            bail!(WORKER_GONE);
        };
        if let Record::Test { outcome, .. } = record {
            match outcome {
                TestOutcome::Passed => counts.0 += 1,
                TestOutcome::Failed | TestOutcome::TimedOut => counts.1 += 1,
            }
        }
        print_record(record)
    }

    /// Returns the numbers of passed and failed tests.
    fn counts(&self) -> (usize, usize) {
        self.counts.lock().map_or((0, 1), |counts| *counts)
    }
}
