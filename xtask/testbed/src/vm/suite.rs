//! `cargo xtask vm test`: runs every package's kernel tests on real kernels.
//!
//! The kernels run concurrently: the tests mostly wait for deadlines and timers.

use std::process::ExitCode;
use std::thread::ScopedJoinHandle;
use std::time::{Duration, Instant};

use anyhow::{anyhow, bail};
use guest_wire::{Line, Record, TestOutcome};

use super::build;
use super::image::Addition;
use super::kernel::{Kernel, Line as KernelLine};
use super::machine::{GuestClock, GuestSpec};
use super::machines::Machines;
use crate::TestCounts;

/// The module of tests whose subject is the same on every kernel.
const ONE_KERNEL: &str = "one_kernel::";

/// The module of tests that take minutes, in every kind of suite.
pub const LONG: &str = "storm::";

/// Options of `cargo xtask vm test`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The kernel to boot, with two processors; by default all kernels concurrently, each with one processor.
    #[arg(long)]
    kernel: Option<KernelLine>,
    /// Build and run only this package's tests, with only the programs that they need; repeatable.
    #[arg(long, value_name = "NAME")]
    package: Vec<String>,
    /// Run tests of modules `one_kernel` on 6.12 only, and skip those of modules `storm`, as `cargo xtask test` does.
    #[arg(long)]
    gate: bool,
    /// Build the tests and the programs that they need, but do not run them.
    #[arg(long, conflicts_with_all = ["kernel", "gate", "filter"])]
    no_run: bool,
    /// Run only tests whose name contains this.
    filter: Option<String>,
    /// Time limit of one test in seconds.
    #[arg(long, default_value_t = 240)]
    limit: u64,
    /// Time limit of one kernel's suite in minutes.
    #[arg(long, default_value_t = 20)]
    suite_limit: u64,
}

impl Args {
    fn clock(&self) -> GuestClock {
        match self.kernel {
            Some(_alone) => GuestClock::Real,
            None => GuestClock::Shared,
        }
    }
}

/// Runs the suites and prints `N passed, N failed`.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    if args.no_run {
        build::tests(&args.package)?;
        return Ok(ExitCode::SUCCESS);
    }
    let counts = all(args)?;
    anstream::println!("{counts}");
    Ok(ExitCode::from(u8::from(counts.failed > 0)))
}

/// Runs the suites on every selected kernel concurrently.
fn all(args: &Args) -> anyhow::Result<TestCounts> {
    let machines = Machines::open()?;
    let mut additions = build::tests(&args.package)?;
    additions.extend(machines.both_iptables()?);
    let lines = args
        .kernel
        .map_or(KernelLine::ALL.to_vec(), |line| vec![line]);
    let kernels: Vec<Kernel> = lines
        .into_iter()
        .map(|line| machines.kernel(line))
        .collect::<anyhow::Result<_>>()?;
    let suites = std::thread::scope(|scope| {
        let started: Vec<_> = kernels
            .iter()
            .map(|kernel| scope.spawn(|| one(&machines, kernel, additions.clone(), args)))
            .collect();
        started
            .into_iter()
            .map(ScopedJoinHandle::join)
            .collect::<Vec<_>>()
    });
    let (mut sum, mut failures) = (TestCounts::default(), Vec::new());
    for (kernel, suite) in kernels.iter().zip(suites) {
        let suite = suite.unwrap_or_else(|_panic| Err(anyhow!("its thread panicked")));
        let (counts, failed) = suite.unwrap_or_else(|error| {
            let whole = TestCounts {
                passed: 0,
                failed: 1,
            };
            (whole, vec![format!("{}: FAILED: {error:#}", kernel.line)])
        });
        sum.add(counts);
        failures.extend(failed);
    }
    // Repeats the failures at the end, because hundreds of lines may follow them.
    for failure in failures {
        anstream::println!("{failure}");
    }
    Ok(sum)
}

/// Returns the shell line that the guest with this kernel runs.
fn job(args: &Args, line: KernelLine) -> Addition {
    let filter = args.filter.as_ref().map_or(String::new(), |filter| {
        format!(" --filter {}", super::shell::quote(filter))
    });
    let skip = skipped(args.gate, line).map(|word| format!(" --skip {word}"));
    let skip = skip.collect::<String>();
    Addition::Text {
        path: "job".to_owned(),
        content: format!(
            "exec guest suite /tests --limit {}{skip}{filter}\n",
            args.limit
        ),
    }
}

/// Returns the modules whose tests this kernel skips.
fn skipped(gate: bool, line: KernelLine) -> impl Iterator<Item = &'static str> {
    let long = gate.then_some(LONG);
    let elsewhere = (gate && line != KernelLine::V6_12).then_some(ONE_KERNEL);
    long.into_iter().chain(elsewhere)
}

/// Runs the suite on one kernel and prints each test as it ends. Returns the counts, and the lines of failed tests.
fn one(
    machines: &Machines,
    kernel: &Kernel,
    mut additions: Vec<Addition>,
    args: &Args,
) -> anyhow::Result<(TestCounts, Vec<String>)> {
    let line = kernel.line;
    additions.push(job(args, line));
    anstream::println!("{line}: booting {}", kernel.release);
    let mut machine = machines.start(&GuestSpec {
        kernel,
        additions,
        memory: 1024,
        network: false,
        limit: Duration::from_secs(60 * args.suite_limit),
        clock: args.clock(),
    })?;
    let mut progress = SuiteProgress::new(line);
    let began = Instant::now();
    while let Some(text) = machine.line()? {
        if let Err(problem) = progress.handle_line(Line::parse(&text)) {
            bail!(machine.report(&problem));
        }
    }
    let counts = progress
        .result()
        .map_err(|problem| anyhow!(machine.report(&problem)))?;
    anstream::println!(
        "{line}: {} passed, {} failed in {:.1} s with its boot",
        counts.passed,
        counts.failed,
        began.elapsed().as_secs_f64()
    );
    Ok((counts, progress.failures))
}

/// The records of a suite so far.
struct SuiteProgress {
    line: KernelLine,
    planned: Option<usize>,
    seen: TestCounts,
    ended: Option<TestCounts>,
    status: Option<i32>,
    /// The printed lines of each failed test.
    failures: Vec<String>,
}

impl SuiteProgress {
    fn new(line: KernelLine) -> Self {
        Self {
            line,
            planned: None,
            seen: TestCounts::default(),
            ended: None,
            status: None,
            failures: Vec::new(),
        }
    }

    /// Processes one line, and prints it if it is text.
    fn handle_line(&mut self, line: Line) -> Result<(), String> {
        match line {
            Line::Text(text) => self.show(&text),
            Line::Broken(text) => return Err(format!("a record was cut short: {text}")),
            Line::Record(before, record) => {
                if let Some(text) = before {
                    self.show(&text);
                }
                self.record(record);
            }
        }
        Ok(())
    }

    fn record(&mut self, record: Record) {
        match record {
            Record::Plan { tests } => self.planned = Some(tests),
            Record::End { passed, failed } => self.ended = Some(TestCounts { passed, failed }),
            Record::Exit { status } => self.status = Some(status),
            Record::Test {
                name,
                outcome,
                milliseconds,
                output,
            } => {
                let word = match outcome {
                    TestOutcome::Passed => "ok",
                    TestOutcome::Failed => "FAILED",
                    TestOutcome::TimedOut => "FAILED (time limit)",
                };
                let seconds = Duration::from_millis(milliseconds).as_secs_f64();
                let output = indent(&output);
                let text = format!("{}: {word} {name} ({seconds:.2} s){output}", self.line);
                anstream::println!("{text}");
                match outcome {
                    TestOutcome::Passed => self.seen.passed += 1,
                    TestOutcome::Failed | TestOutcome::TimedOut => {
                        self.seen.failed += 1;
                        self.failures.push(text);
                    }
                }
            }
            // Records of other jobs.
            _ => {}
        }
    }

    fn show(&self, text: &str) {
        if !text.is_empty() {
            anstream::eprintln!("{}:     {text}", self.line);
        }
    }

    /// Returns the counts, if the suite ended and reported every planned test.
    fn result(&self) -> Result<TestCounts, String> {
        let Some(planned) = self.planned else {
            return Err("the guest ended before its suite began".to_owned());
        };
        let reported = self.seen.passed + self.seen.failed;
        if self.ended != Some(self.seen) || reported != planned || self.status.is_none() {
            return Err(format!(
                "the guest ended early: {reported} of {planned} tests were reported"
            ));
        }
        if planned == 0 {
            return Err("no test matches".to_owned());
        }
        Ok(self.seen)
    }
}

/// Returns every line on an indented line.
fn indent(text: &str) -> String {
    text.lines()
        .fold(String::new(), |all, line| all + "\n    " + line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gate_leaves_out_long_tests_and_repeats_no_test_of_the_agent() {
        let skipped = |gate, line| skipped(gate, line).collect::<Vec<_>>();
        assert_eq!(skipped(true, KernelLine::V6_12), [LONG]);
        for line in [KernelLine::V6_1, KernelLine::Sid] {
            assert_eq!(skipped(true, line), [LONG, ONE_KERNEL]);
            assert!(skipped(false, line).is_empty());
        }
    }

    fn progress(records: Vec<Record>) -> Result<TestCounts, String> {
        let mut progress = SuiteProgress::new(KernelLine::Sid);
        for record in records {
            progress.record(record);
        }
        progress.result()
    }

    fn passed() -> Record {
        Record::Test {
            name: "a::b".to_owned(),
            outcome: TestOutcome::Passed,
            milliseconds: 1,
            output: String::new(),
        }
    }

    fn end() -> Record {
        Record::End {
            passed: 1,
            failed: 0,
        }
    }

    #[test]
    fn a_whole_suite_passes() {
        let records = vec![
            Record::Plan { tests: 1 },
            passed(),
            end(),
            Record::Exit { status: 0 },
        ];
        assert_eq!(
            progress(records),
            Ok(TestCounts {
                passed: 1,
                failed: 0
            })
        );
    }

    #[test]
    fn a_guest_that_crashes_anywhere_never_passes() {
        let whole = [
            Record::Plan { tests: 1 },
            passed(),
            end(),
            Record::Exit { status: 0 },
        ];
        for length in 0..whole.len() {
            let cut: Vec<Record> = whole.iter().take(length).cloned().collect();
            assert!(progress(cut).is_err(), "cut after {length} records");
        }
    }

    #[test]
    fn a_planned_test_without_a_result_fails_the_suite() {
        let records = vec![
            Record::Plan { tests: 2 },
            passed(),
            end(),
            Record::Exit { status: 0 },
        ];
        assert!(progress(records).is_err());
    }

    #[test]
    fn a_filter_that_matches_nothing_is_not_success() {
        let end = Record::End {
            passed: 0,
            failed: 0,
        };
        let records = vec![Record::Plan { tests: 0 }, end, Record::Exit { status: 0 }];
        assert_eq!(progress(records), Err("no test matches".to_owned()));
    }
}
