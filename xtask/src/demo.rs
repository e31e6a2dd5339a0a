//! `cargo xtask demo`: weighted network affinity in a real kernel, with real connections, drawn.
//!
//! The guest does it (`xtask/guest/src/demo.rs`) and tells what happened; this side draws, and
//! judges with the same eyes as the person who looks on: any miss makes the exit code 1.
//! `--kubernetes` is the same in the lab's cluster of three nodes.

mod draw;
mod judge;
mod kubernetes;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::bail;
use guest_wire::{Line, Record};

use judge::{Expected, Judge};
use testbed::vm::image::Addition;
use testbed::vm::kernel::Line as KernelLine;
use testbed::vm::machine::{Machine, Pace, Spec};
use testbed::vm::progress::Step;
use testbed::vm::{Machines, build};

/// How long the guest may take. The whole is to stay under 90 seconds on an idle machine; a busy
/// one is given time.
const LIMIT: Duration = Duration::from_secs(600);

/// Options of `cargo xtask demo`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The kernel to boot.
    #[arg(long, default_value = "6.12", conflicts_with = "kubernetes")]
    kernel: KernelLine,
    /// Connections of each client behind each picture; 1,000 without this, 300 with `--kubernetes`.
    #[arg(long)]
    connections: Option<u64>,
    /// In a real cluster: the lab that runs, or a new one.
    #[arg(long)]
    kubernetes: bool,
    /// Leave the lab and all that is in it as it is in the end.
    #[arg(long, requires = "kubernetes")]
    keep: bool,
}

/// What the demo in one kernel is to show: in the end everything is as it was. A change takes tens
/// of milliseconds there; twenty seconds are for a machine that is busy with ten other things.
const EXPECTED: Expected = Expected {
    connections: 0,
    pictures: 4,
    same: &[(0, 3)],
    slowest_change: 20_000.0,
};

/// Runs the demo.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let began = Instant::now();
    let (judge, next_steps) = if args.kubernetes {
        let look = "cargo xtask demo --kubernetes --keep";
        let change = "xtask/src/demo/kubernetes/shop.yaml";
        (
            kubernetes::run(args.connections.unwrap_or(300), args.keep)?,
            draw::next_steps(change, look),
        )
    } else {
        let change = "manifests/examples/shop/service.yaml";
        (
            in_one_kernel(args)?,
            draw::next_steps(change, "cargo xtask vm shell"),
        )
    };
    let misses = judge.verdict();
    for miss in &misses {
        anstream::println!("{}", draw::miss(miss));
    }
    anstream::println!("{next_steps}");
    anstream::eprintln!("  the demo took {:.0} s", began.elapsed().as_secs_f64());
    anstream::println!("{} passed, {} failed", judge.passed(), misses.len());
    Ok(ExitCode::from(u8::from(!misses.is_empty())))
}

fn in_one_kernel(args: &Args) -> anyhow::Result<Judge> {
    let connections = args.connections.unwrap_or(1000);
    let lab = Machines::open()?;
    let mut additions = build::programs(build::Profile::Guest)?;
    additions.push(Addition::Text {
        path: "job".to_owned(),
        content: format!("exec guest demo --connections {connections}\n"),
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
    watch(&mut machine, step, connections)
}

/// Draws what the guest tells until it powers off; what was seen, for the verdict.
fn watch(machine: &mut Machine, boot: Step, connections: u64) -> anyhow::Result<Judge> {
    let mut judge = Judge::new(Expected {
        connections,
        ..EXPECTED
    });
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
                let columns = vec![picture];
                anstream::println!("{}", draw::picture(&columns));
                judge.picture(columns);
            }
            Record::Change(change) => {
                anstream::println!("{}", draw::change(&change));
                judge.change(change);
            }
            Record::Proof { command, text } => {
                anstream::println!("{}", draw::proof(draw::KERNEL_VIEW, &command, &text));
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
