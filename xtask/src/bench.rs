//! `cargo xtask bench`: what the agent costs on a real kernel, held against targets.
//!
//! The guest (`guest bench`) measures and tells raw readings; this side forms the figures, prints
//! them, and writes `docs/bench.json` and `docs/bench.svg`.

mod figures;
mod heartbeats;
mod rivals;
mod svg;
mod table;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, bail};
use guest_wire::report::Report;
use guest_wire::{Line, Record};
use serde::{Deserialize, Serialize};

use figures::Figure;
use testbed::paths;
use testbed::vm::image::Addition;
use testbed::vm::machine::{Machine, Pace, Processors, Spec};
use testbed::vm::progress::Step;
use testbed::vm::{Machines, build, kernel};

/// Room for the kernel's table, the agent, and two copies of the cluster in memory, in MiB.
const MEMORY: u32 = 3_072;

/// Options of `cargo xtask bench`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Numbers of virtual servers, smallest first; each has 10 real servers.
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "1000,5000,10000",
        default_value_if("kubernetes", "true", "1000,10000")
    )]
    sizes: Vec<u32>,
    /// Measure beside kube-proxy, on a real API server, instead of against the bare kernel.
    #[arg(long)]
    kubernetes: bool,
    /// Measure what an agent receives in an hour of heartbeats of so many Nodes, read from the Nodes and from the map.
    #[arg(long, value_name = "COUNT", conflicts_with = "kubernetes")]
    nodes: Option<u64>,
    /// With --nodes: heartbeats of each Node that are sent, of the twelve that an hour has.
    #[arg(long, default_value_t = 12)]
    heartbeats: u64,
    /// With --kubernetes: measure only these.
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        default_value = "ipvs-topo,ipvs,nftables"
    )]
    rivals: Vec<rivals::Kind>,
    /// With --kubernetes: seconds of rolling updates for ipvs-topo.
    #[arg(long, default_value_t = 60)]
    churn: u64,
    /// How many times what alternates is measured.
    #[arg(long, default_value_t = 3)]
    repeat: u32,
    /// How many endpoints leave and come back at each size.
    #[arg(long, default_value_t = 25)]
    changes: u32,
    /// The kernel to measure on.
    #[arg(long, default_value = "6.12")]
    kernel: kernel::Line,
    /// What the guest's clock goes by.
    #[arg(long, value_enum, default_value = "counted")]
    pace: Pace,
    /// Minutes it may take.
    #[arg(long, default_value_t = 30)]
    limit: u64,
    /// Do not measure: draw and judge the readings of an earlier run.
    #[arg(long, value_name = "FILE")]
    from: Option<PathBuf>,
    /// Where bench.json and bench.svg go.
    #[arg(long, value_name = "FOLDER", default_value_os_t = paths::root().join("docs"))]
    out: PathBuf,
}

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

/// What a guest told.
struct Told {
    /// What it measured.
    record: Record,
    /// How long this machine had run its processors when it said [`Record::Mark`].
    marks: Vec<Processors>,
}

/// Shows the guest's progress until it ends; what it told, if it ended well.
fn listen(mut machine: Machine, boot: Step) -> anyhow::Result<Told> {
    let mut boot = Some(boot);
    let mut marks = Vec::new();
    let mut told = None;
    let mut status = None;
    while let Some(text) = machine.line()? {
        if let Some(boot) = boot.take() {
            boot.done("");
        }
        match Line::parse(&text) {
            Line::Record(_, Record::Exit { status: ended }) => status = Some(ended),
            Line::Record(_, Record::Mark) => marks.push(machine.processors()?),
            Line::Record(_, record) if told.is_none() => told = Some(record),
            Line::Text(text) if text.is_empty() => {}
            Line::Text(text) => anstream::eprintln!("    {text}"),
            Line::Record(..) | Line::Broken(_) => {
                bail!(machine.report(&format!("unexpected: {text}")))
            }
        }
    }
    match (told, status) {
        (Some(record), Some(0)) => Ok(Told { record, marks }),
        (_, Some(status)) => {
            bail!(machine.report(&format!("the measurement failed with status {status}")))
        }
        (_, None) => bail!(machine.report("the guest ended before the measurement did")),
    }
}
