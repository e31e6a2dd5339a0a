//! `cargo xtask bench`: what the agent costs on a real kernel, held against targets.
//!
//! The guest (`guest bench`) measures and tells raw readings; this side forms the figures, prints
//! them, and writes `docs/bench.json` and `docs/bench.svg`.

mod args;
mod figures;
mod heartbeats;
mod listen;
mod rivals;
mod svg;
mod table;

use std::fs;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, bail};
use guest_wire::Record;
use guest_wire::report::Report;
use serde::{Deserialize, Serialize};

pub(crate) use args::Args;
use figures::Figure;
use listen::listen;
use testbed::vm::image::Addition;
use testbed::vm::machine::Spec;
use testbed::vm::progress::Step;
use testbed::vm::{Machines, build};

/// Room for the kernel's table, the agent, and two copies of the cluster in memory, in MiB.
const MEMORY: u32 = 3_072;

/// What `bench.json` holds.
#[derive(Serialize)]
struct Written<'a> {
    figures: &'a [Figure],
    readings: &'a Report,
}

/// What is read back from `bench.json`: the figures are formed anew.
#[derive(Deserialize)]
struct Read {
    readings: Report,
}

/// Measures, prints the table, writes the files; fails when a target was missed.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    if let Some(nodes) = args.nodes {
        return heartbeats::run(args, nodes);
    }
    if args.kubernetes {
        return rivals::run(args);
    }
    let report = match &args.from {
        Some(file) => read(file)?,
        None => measure(args)?,
    };
    let figures = figures::figures(&report);
    write(&args.out, &report, &figures)?;
    anstream::println!("{}", table::table(&report, &figures));
    let missed = figures.iter().filter(|figure| !figure.reached).count();
    anstream::println!(
        "{} of {} targets reached",
        figures.len() - missed,
        figures.len()
    );
    Ok(ExitCode::from(u8::from(missed > 0)))
}

fn read(file: &Path) -> anyhow::Result<Report> {
    let text = fs::read(file).with_context(|| file.display().to_string())?;
    let Read { readings } =
        serde_json::from_slice(&text).with_context(|| file.display().to_string())?;
    Ok(readings)
}

fn write(folder: &Path, readings: &Report, figures: &[Figure]) -> anyhow::Result<()> {
    fs::create_dir_all(folder)?;
    let mut json = serde_json::to_string_pretty(&Written { figures, readings })?;
    json.push('\n');
    fs::write(folder.join("bench.json"), json)?;
    fs::write(folder.join("bench.svg"), svg::draw(readings, figures)?)?;
    Ok(())
}

fn measure(args: &Args) -> anyhow::Result<Report> {
    let lab = Machines::open()?;
    let mut additions = build::programs(build::Profile::Release)?;
    additions.push(job(args));
    let kernel = lab.kernel(args.kernel)?;
    let boot = Step::begin(format!("booting {}", kernel.release));
    let machine = lab.start(&Spec {
        kernel: &kernel,
        additions,
        memory: MEMORY,
        network: false,
        limit: Duration::from_secs(60 * args.limit),
        pace: args.pace,
    })?;
    match listen(machine, boot)?.record {
        Record::Report(report) => Ok(*report),
        other => bail!("the guest told something else: {other:?}"),
    }
}

/// The shell line that the guest runs.
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
