//! `cargo xtask bench`: measures what the agent costs on a real kernel, and compares it with targets.
//!
//! The guest (`guest bench`) sends raw readings. The host derives figures, prints them, and writes `docs/bench.json` and
//! `docs/bench.svg`.

mod args;
mod dns;
mod figures;
mod heartbeats;
mod host_process;
mod kubernetes;
mod large_cluster;
mod listen;
mod measured;
mod median;
mod pods;
mod svg;
mod table;

use std::fs;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::bail;
use guest_wire::Record;
use guest_wire::report::Report;
use serde::{Deserialize, Serialize};

pub(crate) use args::Args;
use listen::listen;
use measured::measured;
use testbed::vm::image::Addition;
use testbed::vm::machine::GuestSpec;
use testbed::vm::progress::ProgressLine;
use testbed::vm::{Machines, build};

/// Memory of the guest in MiB: for the kernel's table, the agent, and two copies of the cluster.
const MEMORY: u32 = 3_072;

/// The contents of `bench.json`.
#[derive(Serialize, Deserialize)]
struct BenchFile {
    readings: Report,
}

/// Measures, prints the table and writes the files; fails when a target is missed.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    if let Some(nodes) = args.nodes {
        return match args.pods {
            Some(pods) => pods::run(args, nodes, pods),
            None => heartbeats::run(args, nodes),
        };
    }
    if args.kubernetes {
        return kubernetes::run(args);
    }
    if args.dns {
        return dns::run(args);
    }
    let BenchFile { readings: report } = measured(args, "bench.json", || {
        let readings = measure(args)?;
        Ok(BenchFile { readings })
    })?;
    let figures = figures::figures(&report);
    fs::write(args.out.join("bench.svg"), svg::draw(&report, &figures)?)?;
    anstream::println!("{}", table::table(&report, &figures));
    let missed = figures.iter().filter(|figure| !figure.reached).count();
    anstream::println!(
        "{} of {} targets reached",
        figures.len() - missed,
        figures.len()
    );
    Ok(ExitCode::from(u8::from(missed > 0)))
}

fn measure(args: &Args) -> anyhow::Result<Report> {
    let machines = Machines::open()?;
    let mut additions = build::programs(build::Profile::Release)?;
    additions.push(job(args));
    let kernel = machines.kernel(args.kernel)?;
    let boot = ProgressLine::begin(format!("booting {}", kernel.release));
    let machine = machines.start(&GuestSpec {
        kernel: &kernel,
        additions,
        memory: MEMORY,
        network: false,
        limit: Duration::from_secs(60 * args.limit),
        clock: args.clock,
    })?;
    match listen(machine, boot)?.record {
        Record::Report(report) => Ok(*report),
        other => bail!("the guest sent another record: {other:?}"),
    }
}

fn job(args: &Args) -> Addition {
    let sizes: Vec<_> = args.sizes.iter().map(u32::to_string).collect();
    Addition::Text {
        path: "job".to_owned(),
        content: format!(
            "exec guest bench all --sizes {} --repeat {} --changes {}\n",
            sizes.join(","),
            args.repeat,
            args.changes
        ),
    }
}
