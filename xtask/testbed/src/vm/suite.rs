//! `cargo xtask vm test`: every package's kernel tests on real kernels, test by test.
//!
//! The kernels run side by side: much of a suite is waiting, for a deadline, a timer or silence.

use std::process::ExitCode;
use std::thread::ScopedJoinHandle;
use std::time::{Duration, Instant};

use anyhow::{anyhow, bail};
use guest_wire::{Line, Outcome, Record};

use super::build;
use super::image::Addition;
use super::kernel::{Kernel, Line as KernelLine};
use super::machine::{Pace, Spec};
use super::machines::Machines;

/// The module of tests about what is the same on every kernel, as it stands in their paths.
const ONE_KERNEL: &str = "one_kernel::";

/// The module of tests that take minutes, in every kind of test.
pub const LONG: &str = "storm::";

/// Options of `cargo xtask vm test`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The kernel to boot, with two processors; all of them side by side, each with one, when left
    /// out.
    #[arg(long)]
    kernel: Option<KernelLine>,
    /// Build and run only this package's tests, with only the programs they need; may be given
    /// again.
    #[arg(long, value_name = "NAME")]
    package: Vec<String>,
    /// Run what a module `one_kernel` holds on 6.12 only, and leave out what a module `storm`
    /// holds, as `cargo xtask test` does.
    #[arg(long)]
    gate: bool,
    /// Run only tests whose name contains this.
    filter: Option<String>,
    /// Seconds that one test may take.
    #[arg(long, default_value_t = 240)]
    limit: u64,
    /// Minutes that one kernel's suite may take.
    #[arg(long, default_value_t = 20)]
    suite_limit: u64,
}

impl Args {
    fn pace(&self) -> Pace {
        match self.kernel {
            Some(_alone) => Pace::Real,
            None => Pace::Shared,
        }
    }
}

/// What came out of a suite.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// Tests that passed.
    pub(crate) passed: usize,
    /// Tests that did not.
    pub(crate) failed: usize,
}

impl Counts {
    fn add(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
    }
}

/// Runs the suites and prints `N passed, N failed`.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let counts = all(args)?;
    anstream::println!("{} passed, {} failed", counts.passed, counts.failed);
    Ok(ExitCode::from(u8::from(counts.failed > 0)))
}

/// Runs the suites on every kernel asked for, all at the same time.
fn all(args: &Args) -> anyhow::Result<Counts> {
    let lab = Machines::open()?;
    let additions = build::tests(&args.package)?;
    let lines = args
        .kernel
        .map_or(KernelLine::ALL.to_vec(), |line| vec![line]);
    let kernels: Vec<Kernel> = lines
        .into_iter()
        .map(|line| lab.kernel(line))
        .collect::<anyhow::Result<_>>()?;
    let suites = std::thread::scope(|scope| {
        let started: Vec<_> = kernels
            .iter()
            .map(|kernel| scope.spawn(|| one(&lab, kernel, additions.clone(), args)))
            .collect();
        started
            .into_iter()
            .map(ScopedJoinHandle::join)
            .collect::<Vec<_>>()
    });
    let (mut sum, mut failures) = (Counts::default(), Vec::new());
    for (kernel, suite) in kernels.iter().zip(suites) {
        let suite = suite.unwrap_or_else(|_panic| Err(anyhow!("its thread panicked")));
        let (counts, failed) = suite.unwrap_or_else(|error| {
            let whole = Counts {
                passed: 0,
                failed: 1,
            };
            (whole, vec![format!("{}: FAILED: {error:#}", kernel.line)])
        });
        sum.add(counts);
        failures.extend(failed);
    }
    // Once more: hundreds of lines stand between a failure and the end.
    for failure in failures {
        anstream::println!("{failure}");
    }
    Ok(sum)
}

/// The shell line that the guest with this kernel runs.
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

/// The modules whose tests a kernel does not run.
fn skipped(gate: bool, line: KernelLine) -> impl Iterator<Item = &'static str> {
    let long = gate.then_some(LONG);
    let elsewhere = (gate && line != KernelLine::V6_12).then_some(ONE_KERNEL);
    long.into_iter().chain(elsewhere)
}

/// Runs the suite on one kernel, printing each test as it ends; returns the counts and what was printed of failures.
fn one(
    lab: &Machines,
    kernel: &Kernel,
    mut additions: Vec<Addition>,
    args: &Args,
) -> anyhow::Result<(Counts, Vec<String>)> {
    let line = kernel.line;
    additions.push(job(args, line));
    anstream::println!("{line}: booting {}", kernel.release);
    let mut machine = lab.start(&Spec {
        kernel,
        additions,
        memory: 1024,
        network: false,
        limit: Duration::from_secs(60 * args.suite_limit),
        pace: args.pace(),
    })?;
    let mut tally = Tally::new(line);
    let began = Instant::now();
    while let Some(text) = machine.line()? {
        if let Err(trouble) = tally.take(Line::parse(&text)) {
            bail!(machine.report(&trouble));
        }
    }
    let counts = tally
        .verdict()
        .map_err(|trouble| anyhow!(machine.report(&trouble)))?;
    anstream::println!(
        "{line}: {} passed, {} failed in {:.1} s with its boot",
        counts.passed,
        counts.failed,
        began.elapsed().as_secs_f64()
    );
    Ok((counts, tally.failures))
}

/// What a suite has told so far.
struct Tally {
    line: KernelLine,
    planned: Option<usize>,
    seen: Counts,
    ended: Option<Counts>,
    status: Option<i32>,
    /// What was printed of each test that failed.
    failures: Vec<String>,
}

impl Tally {
    fn new(line: KernelLine) -> Self {
        Self {
            line,
            planned: None,
            seen: Counts::default(),
            ended: None,
            status: None,
            failures: Vec::new(),
        }
    }

    /// Takes one line in, and prints it when it is for people.
    fn take(&mut self, line: Line) -> Result<(), String> {
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
            Record::End { passed, failed } => self.ended = Some(Counts { passed, failed }),
            Record::Exit { status } => self.status = Some(status),
            Record::Test {
                name,
                outcome,
                milliseconds,
                output,
            } => {
                let word = match outcome {
                    Outcome::Passed => "ok",
                    Outcome::Failed => "FAILED",
                    Outcome::TimedOut => "FAILED (time limit)",
                };
                let seconds = Duration::from_millis(milliseconds).as_secs_f64();
                let output = indent(&output);
                let text = format!("{}: {word} {name} ({seconds:.2} s){output}", self.line);
                anstream::println!("{text}");
                match outcome {
                    Outcome::Passed => self.seen.passed += 1,
                    Outcome::Failed | Outcome::TimedOut => {
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

    /// The counts, if the suite ran to its end and every test it planned was heard of.
    fn verdict(&self) -> Result<Counts, String> {
        let Some(planned) = self.planned else {
            return Err("the guest ended before its suite began".to_owned());
        };
        let heard = self.seen.passed + self.seen.failed;
        if self.ended != Some(self.seen) || heard != planned || self.status.is_none() {
            return Err(format!(
                "the guest ended early: {heard} of {planned} tests were heard of"
            ));
        }
        if planned == 0 {
            return Err("no test matches".to_owned());
        }
        Ok(self.seen)
    }
}

/// Each line of it on a line of its own.
fn indent(text: &str) -> String {
    text.lines()
        .fold(String::new(), |all, line| all + "\n    " + line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gate_leaves_out_what_is_long_and_repeats_nothing_that_is_about_the_agent() {
        let skipped = |gate, line| skipped(gate, line).collect::<Vec<_>>();
        assert_eq!(skipped(true, KernelLine::V6_12), [LONG]);
        for line in [KernelLine::V6_1, KernelLine::Sid] {
            assert_eq!(skipped(true, line), [LONG, ONE_KERNEL]);
            assert!(skipped(false, line).is_empty());
        }
    }

    fn tally(records: Vec<Record>) -> Result<Counts, String> {
        let mut tally = Tally::new(KernelLine::Sid);
        for record in records {
            tally.record(record);
        }
        tally.verdict()
    }

    fn passed() -> Record {
        Record::Test {
            name: "a::b".to_owned(),
            outcome: Outcome::Passed,
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
            tally(records),
            Ok(Counts {
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
            assert!(tally(cut).is_err(), "cut after {length} records");
        }
    }

    #[test]
    fn a_test_that_was_planned_and_not_heard_of_fails_the_suite() {
        let records = vec![
            Record::Plan { tests: 2 },
            passed(),
            end(),
            Record::Exit { status: 0 },
        ];
        assert!(tally(records).is_err());
    }

    #[test]
    fn a_filter_that_matches_nothing_is_not_success() {
        let end = Record::End {
            passed: 0,
            failed: 0,
        };
        let records = vec![Record::Plan { tests: 0 }, end, Record::Exit { status: 0 }];
        assert_eq!(tally(records), Err("no test matches".to_owned()));
    }
}
