//! `cargo xtask demo`: weighted network affinity in a real kernel, with real connections, drawn.
//!
//! The guest does it (`xtask/guest/src/demo.rs`) and tells what happened; this side draws, and
//! judges with the same eyes as the person who looks on: any miss makes the exit code 1.

mod draw;
mod judge;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::bail;
use guest_wire::{Line, Record};

use crate::vm::image::Addition;
use crate::vm::kernel::Line as KernelLine;
use crate::vm::machine::{Machine, Pace, Spec};
use crate::vm::progress::Step;
use crate::vm::{Lab, build};
use judge::Judge;

/// How long the guest may take. The whole is to stay under 90 seconds on an idle machine; a busy
/// one is given time.
const LIMIT: Duration = Duration::from_secs(600);

/// Options of `cargo xtask demo`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The kernel to boot.
    #[arg(long, default_value = "6.12")]
    kernel: KernelLine,
    /// Connections behind each picture.
    #[arg(long, default_value_t = 1000)]
    connections: u64,
}

/// Runs the demo.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let began = Instant::now();
    let lab = Lab::open()?;
    let mut additions = build::programs(build::Profile::Guest)?;
    additions.push(Addition::Text {
        path: "job".to_owned(),
        content: format!("exec guest demo --connections {}\n", args.connections),
    });
    let kernel = lab.kernel(args.kernel)?;
    let step = Step::begin(format!("booting Linux {}", kernel.release));
    let mut machine = lab.start(&Spec {
        kernel: &kernel,
        additions,
        memory: 1024,
        network: false,
        limit: LIMIT,
        pace: Pace::Real,
    })?;
    let judge = watch(&mut machine, step, args)?;
    let misses = judge.verdict();
    for miss in &misses {
        anstream::println!("{}", draw::miss(miss));
    }
    anstream::println!("{}", draw::next_steps());
    anstream::eprintln!("  the demo took {:.0} s", began.elapsed().as_secs_f64());
    anstream::println!("{} passed, {} failed", judge.passed(), misses.len());
    Ok(ExitCode::from(u8::from(!misses.is_empty())))
}

/// Draws what the guest tells until it powers off; what was seen, for the verdict.
fn watch(machine: &mut Machine, boot: Step, args: &Args) -> anyhow::Result<Judge> {
    let mut judge = Judge::new(args.connections);
    let mut status = None;
    let mut step = Some(boot);
    while let Some(text) = machine.line()? {
        let record = match Line::parse(&text) {
            Line::Text(text) => {
                draw::aside(&text);
                continue;
            }
            Line::Broken(text) => bail!(machine.report(&format!("a record was cut short: {text}"))),
            Line::Record(before, record) => {
                draw::aside(&before.unwrap_or_default());
                record
            }
        };
        if let Some(step) = step.take() {
            step.done("");
        }
        match record {
            Record::Progress { text } => step = Some(Step::begin(text)),
            Record::Picture(picture) => {
                anstream::println!("{}", draw::picture(&picture));
                judge.picture(picture);
            }
            Record::Change(change) => {
                anstream::println!("{}", draw::change(&change));
                judge.change(change);
            }
            Record::Proof { command, text } => {
                anstream::println!("{}", draw::proof(&command, &text));
                judge.proof(text);
            }
            Record::Exit { status: ended } => status = Some(ended),
            // Records of other jobs.
            _ => {}
        }
    }
    match status {
        Some(0) => Ok(judge),
        Some(status) => bail!(machine.report(&format!("the demo failed in the guest ({status})"))),
        None => bail!(machine.report("the guest ended before the demo did")),
    }
}
