//! Measures every cluster size, each measurement in a fresh network namespace.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use benches::{Shape, write_cluster, write_folder};
use guest_wire::Record;
use guest_wire::report::{ColdLoad, Report, ResidentMemory, SizeReport};
use serde::de::DeserializeOwned;

use super::cold::Cold;
use super::namespace;
use super::steady::Steady;
use crate::output::{log, print_record};

/// `guest bench all`.
#[derive(clap::Args)]
pub(crate) struct AllArgs {
    /// The agent's binary.
    #[arg(long, default_value = "/usr/bin/ipvs-topo")]
    agent: PathBuf,
    /// Numbers of virtual servers, smallest first.
    #[arg(long, value_delimiter = ',', default_value = "1000,5000,10000")]
    sizes: Vec<u32>,
    /// Number of repetitions of the measurements that alternate.
    #[arg(long, default_value_t = 3)]
    repeat: u32,
    /// Number of endpoints that leave and come back.
    #[arg(long, default_value_t = 25)]
    changes: u32,
    /// A folder in memory for the clusters.
    #[arg(long, default_value = "/tmp/bench")]
    scratch: PathBuf,
}

/// Describes the cluster with this number of Services.
pub(crate) fn shape(services: u32) -> Shape {
    Shape {
        services,
        weights: Some("node=80,zone=15,*=5".to_owned()),
        ..Shape::default()
    }
}

/// Measures everything and prints the report as one record.
pub(crate) fn all(args: &AllArgs) -> Result<()> {
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease")?;
    let mut report = Report {
        kernel: kernel.trim().to_owned(),
        endpoints: shape(0).endpoints,
        sizes: Vec::new(),
    };
    for services in &args.sizes {
        fs::create_dir_all(&args.scratch)?;
        report.sizes.push(size(args, *services)?);
        fs::remove_dir_all(&args.scratch)?;
    }
    print_record(&Record::Report(Box::new(report)))
}

fn size(args: &AllArgs, services: u32) -> Result<SizeReport> {
    let shape = shape(services);
    let (load, memory_file) = load(args, &shape)?;
    log(&format!("{services}: changes, idle, restarts"));
    let folder = args.scratch.join("folder/cluster");
    let aside = args.scratch.join("aside");
    fs::create_dir_all(&aside)?;
    write_folder(&shape, &folder)?;
    let steady: Steady = measure(&[
        "steady",
        "--agent",
        text(&args.agent)?,
        "--folder",
        text(&folder)?,
        "--aside",
        text(&aside)?,
        "--services",
        &services.to_string(),
        "--changes",
        &args.changes.to_string(),
        "--repeat",
        &args.repeat.to_string(),
    ])?;
    let Steady {
        change,
        restart,
        idle,
        memory,
    } = steady;
    Ok(SizeReport {
        services,
        load,
        change,
        restart,
        idle,
        memory_file,
        memory_folder: memory,
    })
}

/// Lets the agent and the bare loop fill empty kernels, in turns.
fn load(args: &AllArgs, shape: &Shape) -> Result<(ColdLoad, ResidentMemory)> {
    // The agent watches the folder of the file, so nothing else is written there.
    let around = args.scratch.join("file");
    fs::create_dir_all(&around)?;
    let cluster = around.join("cluster.yaml");
    let messages = args.scratch.join("messages");
    let mut file = std::io::BufWriter::new(fs::File::create(&cluster)?);
    write_cluster(shape, &mut file)?;
    file.into_inner()?;
    let mut load = ColdLoad::default();
    let mut memory = ResidentMemory::default();
    for round in 1..=args.repeat {
        log(&format!(
            "{}: cold load {round} of {}",
            shape.services, args.repeat
        ));
        let (agent, cluster, messages) = (text(&args.agent)?, text(&cluster)?, text(&messages)?);
        let cold: Cold = measure(&[
            "cold",
            "--agent",
            agent,
            "--cluster",
            cluster,
            "--messages",
            messages,
        ])?;
        load.floor
            .push(measure(&["floor", "--messages", messages])?);
        load.agent.push(cold.start);
        memory = cold.memory;
    }
    fs::remove_file(&cluster)?;
    Ok((load, memory))
}

/// Runs one measurement in its own network namespace.
fn measure<T: DeserializeOwned>(arguments: &[&str]) -> Result<T> {
    namespace::settle()?;
    let what = arguments.first().copied().unwrap_or_default();
    let output = Command::new("unshare")
        .arg("--net")
        .arg(std::env::current_exe()?)
        .arg("bench")
        .args(arguments)
        .stderr(Stdio::inherit())
        .output()
        .context("unshare")?;
    ensure!(
        output.status.success(),
        "the measurement `{what}` failed ({})",
        output.status
    );
    serde_json::from_slice(&output.stdout).with_context(|| format!("the answer of `{what}`"))
}

fn text(path: &Path) -> Result<&str> {
    path.to_str().context("a path that is not text")
}
