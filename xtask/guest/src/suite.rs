//! Runs libtest binaries test by test and tells the host how each ended.
//!
//! Every test is a process in its own network, mount and process namespaces: an empty IPVS
//! table, `lo` up, `/run` and `/tmp` empty, and nothing left behind, whatever the test started.
//! Two run at a time. Tests with `alone` in their path (they load modules, or measure) run
//! after the others, one at a time.
//!
//! Namespaces do not separate everything: the kernel keeps the virtual servers of all of them in
//! one table (`ip_vs_svc_table`), so a neighbour that adds or removes some disturbs a dump of more
//! than one datagram. Tests with many virtual servers are therefore `alone`, too.

mod case;

use std::collections::VecDeque;
use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::sync::Mutex;
use std::time::Duration;

use anyhow::{Context, bail};
use guest_wire::{Outcome, Record};

use case::Case;

use crate::output::print_record;

/// Tests that run at the same time: the guest has two processors.
const WORKERS: usize = 2;

/// A worker never panics by itself; what it runs is another process.
const WORKER_GONE: &str = "a worker of the suite panicked";

/// Options of `guest suite`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The folder with the test binaries; a binary's name begins the names of its tests.
    folder: PathBuf,
    /// Run only tests whose name contains this.
    #[arg(long)]
    filter: Option<String>,
    /// Leave out tests whose name contains this; may be given again.
    #[arg(long, value_name = "WORD")]
    skip: Vec<String>,
    /// Seconds a test may take.
    #[arg(long, default_value_t = 240)]
    limit: u64,
}

/// Runs the suite; fails when any test does.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let wanted = |case: &Case| {
        let name = case.name();
        let filter = args.filter.as_deref().unwrap_or("");
        name.contains(filter) && !args.skip.iter().any(|word| name.contains(word))
    };
    let cases: Vec<Case> = list(&args.folder)?.into_iter().filter(wanted).collect();
    let host = Host::default();
    host.tell(&Record::Plan { tests: cases.len() })?;
    let (alone, together): (Vec<_>, Vec<_>) = cases.into_iter().partition(Case::is_alone);
    let limit = Duration::from_secs(args.limit);
    work(together, WORKERS, limit, &host)?;
    work(alone, 1, limit, &host)?;
    let (passed, failed) = host.counts();
    host.tell(&Record::End { passed, failed })?;
    Ok(ExitCode::from(u8::from(failed > 0)))
}

/// Every test of every binary in `folder`.
fn list(folder: &PathBuf) -> anyhow::Result<Vec<Case>> {
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
                .map(|test| Case::new(&binary, test)),
        );
    }
    Ok(cases)
}

/// Runs `cases`, `workers` at a time.
fn work(cases: Vec<Case>, workers: usize, limit: Duration, host: &Host) -> anyhow::Result<()> {
    let queue = Mutex::new(VecDeque::from(cases));
    let next = || queue.lock().map_or(None, |mut queue| queue.pop_front());
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..workers)
            .map(|_| {
                scope.spawn(|| -> anyhow::Result<()> {
                    while let Some(case) = next() {
                        host.tell(&case.run(limit))?;
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

/// The host at the other end of the serial port, and what it was told.
#[derive(Default)]
struct Host {
    counts: Mutex<(usize, usize)>,
}

impl Host {
    /// Writes a record as one line.
    fn tell(&self, record: &Record) -> anyhow::Result<()> {
        let Ok(mut counts) = self.counts.lock() else {
            bail!(WORKER_GONE);
        };
        if let Record::Test { outcome, .. } = record {
            match outcome {
                Outcome::Passed => counts.0 += 1,
                Outcome::Failed | Outcome::TimedOut => counts.1 += 1,
            }
        }
        print_record(record)
    }

    /// Tests told as passed, and as not passed.
    fn counts(&self) -> (usize, usize) {
        self.counts.lock().map_or((0, 1), |counts| *counts)
    }
}
