//! `cargo xtask demo`: shows weighted network affinity in a real kernel with real connections.
//!
//! The guest (`xtask/guest/src/demo.rs`) runs the demo and reports to the host, which prints and
//! verifies the results. The exit code is 1 if a check fails. `--kubernetes` runs the same in the
//! lab's cluster of three nodes.

mod draw;
mod kubernetes;
mod verify;
mod visit;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::bail;
use guest_wire::{Line, Record};

use testbed::vm::image::Addition;
use testbed::vm::kernel::Line as KernelLine;
use testbed::vm::machine::{GuestClock, GuestSpec, Machine};
use testbed::vm::progress::ProgressLine;
use testbed::vm::{Machines, build};
use verify::{Expectations, Verifier};

/// Time limit of the guest. The demo takes less than 90 seconds on an idle machine; a busy one is
/// slower.
const LIMIT: Duration = Duration::from_secs(600);

/// Options of `cargo xtask demo`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The kernel to boot.
    #[arg(long, default_value = "6.12", conflicts_with = "kubernetes")]
    kernel: KernelLine,
    /// Connections of each client for each measurement; by default 1,000, and 300 with
    /// `--kubernetes`.
    #[arg(long)]
    connections: Option<u64>,
    /// Use a real cluster: the running lab, or a new one.
    #[arg(long)]
    kubernetes: bool,
    /// Keep the lab and everything in it after the demo.
    #[arg(long, requires = "kubernetes")]
    keep: bool,
}

/// The expected result of the demo in one kernel: the last measurement equals the first. A change
/// takes tens of milliseconds; the limit is for busy machines.
const EXPECTED: Expectations = Expectations {
    connections: 0,
    distributions: 4,
    same: &[(0, 3)],
    slowest_change: 20_000.0,
    dns_clients: 2,
};

/// Runs the demo.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let began = Instant::now();
    let (verifier, next_steps) = if args.kubernetes {
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
    let failures = verifier.failures();
    for failure in &failures {
        anstream::println!("{}", draw::failure(failure));
    }
    anstream::println!("{next_steps}");
    anstream::eprintln!("  the demo took {:.0} s", began.elapsed().as_secs_f64());
    anstream::println!("{} passed, {} failed", verifier.passed(), failures.len());
    Ok(ExitCode::from(u8::from(!failures.is_empty())))
}

fn in_one_kernel(args: &Args) -> anyhow::Result<Verifier> {
    let connections = args.connections.unwrap_or(1000);
    let machines = Machines::open()?;
    let mut additions = build::programs(build::Profile::Guest)?;
    additions.push(Addition::Text {
        path: "job".to_owned(),
        content: format!("exec guest demo --connections {connections}\n"),
    });
    let kernel = machines.kernel(args.kernel)?;
    let step = ProgressLine::begin(format!("booting Linux {}", kernel.release));
    let mut machine = machines.start(&GuestSpec {
        kernel: &kernel,
        additions,
        memory: 1024,
        network: false,
        limit: LIMIT,
        clock: GuestClock::Real,
    })?;
    watch(&mut machine, step, connections)
}

/// Prints the guest's reports until it powers off, and returns them for verification.
fn watch(machine: &mut Machine, boot: ProgressLine, connections: u64) -> anyhow::Result<Verifier> {
    let mut verifier = Verifier::new(Expectations {
        connections,
        ..EXPECTED
    });
    let mut status = None;
    let mut step = Some(boot);
    while let Some(text) = machine.line()? {
        let record = match Line::parse(&text) {
            Line::Text(text) => {
                draw::guest_text(&text);
                continue;
            }
            Line::Broken(text) => bail!(machine.report(&format!("a record was cut short: {text}"))),
            Line::Record(before, record) => {
                draw::guest_text(&before.unwrap_or_default());
                record
            }
        };
        if let Some(step) = step.take() {
            step.done("");
        }
        match record {
            Record::Progress { text } => step = Some(ProgressLine::begin(text)),
            Record::Distribution(distribution) => {
                let columns = vec![distribution];
                anstream::println!("{}", draw::distributions(&columns));
                verifier.distribution(columns);
            }
            Record::Change(change) => {
                anstream::println!("{}", draw::change(&change));
                verifier.change(change);
            }
            Record::NameAnswers { answers } => {
                anstream::println!("{}", draw::name_answers(&answers));
                verifier.name_answers(answers);
            }
            Record::CommandOutput { command, text } => {
                anstream::println!(
                    "{}",
                    draw::command_output(draw::KERNEL_VIEW, &command, &text)
                );
                verifier.command_output(text);
            }
            Record::Exit { status: ended } => status = Some(ended),
            // Records of other jobs.
            _ => {}
        }
    }
    match status {
        Some(0) => Ok(verifier),
        Some(status) => bail!(machine.report(&format!("the demo failed in the guest ({status})"))),
        None => bail!(machine.report("the guest ended before the demo did")),
    }
}
