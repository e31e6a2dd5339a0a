//! `cargo xtask bench --nodes`: what an agent receives in an hour of heartbeats, by where it reads Nodes.

use std::collections::BTreeMap;
use std::fs;
use std::process::{Child, Command, ExitCode, Stdio};

use anyhow::{Context as _, ensure};
use serde::{Deserialize, Serialize};

use super::args::Args;
use testbed::cargo;
use testbed::controlplane::{Own, Version};
use testbed::paths;
use testbed::vm::command;
use testbed::vm::progress::Step;

/// Heartbeats of a Node in an hour: kubelets send one every five minutes while nothing changes.
const HOUR: u64 = 12;
/// The size to which everything is projected.
const LARGE: u64 = 15_000;

/// What `cluster`'s example tells.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Found {
    nodes: u64,
    rounds: u64,
    seconds: u64,
    /// How long a Node is as JSON.
    node_bytes: u64,
    /// Received by the end of the first lists.
    lists: Both<Bytes>,
    /// Received in all.
    all: Both<Bytes>,
    /// Events after the first lists.
    changes: Both<u64>,
    /// The most memory that the controller, built with debug information, took, in KiB.
    #[serde(default)]
    controller_peak_kib: u64,
    /// The time of a processor that it took, from its start.
    #[serde(default)]
    controller_cpu_ms: u64,
}

/// By collection.
type Bytes = BTreeMap<String, u64>;

/// One value for each source of Nodes.
#[derive(Debug, Serialize, Deserialize)]
struct Both<T> {
    nodes: T,
    map: T,
}

/// Measures, prints the table, writes `scale.json`.
pub(super) fn run(args: &Args, nodes: u64) -> anyhow::Result<ExitCode> {
    let found = match &args.from {
        Some(from) => serde_json::from_slice(&fs::read(from)?)?,
        None => measure(nodes, args.heartbeats)?,
    };
    let mut json = serde_json::to_string_pretty(&found)?;
    json.push('\n');
    fs::create_dir_all(&args.out)?;
    fs::write(args.out.join("scale.json"), json)?;
    anstream::println!("{}", table(&found));
    Ok(ExitCode::SUCCESS)
}

fn measure(nodes: u64, rounds: u64) -> anyhow::Result<Found> {
    let step = Step::begin("building the controller and who follows");
    let [follower, controller] = [
        ("--example", "heartbeats"),
        ("--bin", "ipvs-topo-controller"),
    ]
    .map(|(kind, name)| cargo::build(cargo::whole("build").args([kind, name]), name));
    let (follower, controller) = (follower?, controller?);
    step.done("");
    let plane = Own::start(Version::Newest)?;
    let crds = paths::root().join("manifests/crds");
    command::output(plane.part("kubectl").args(["apply", "-k"]).arg(crds))?;
    let mut serving = Command::new(controller);
    serving.arg("--kubeconfig").arg(plane.kubeconfig());
    serving.args(["--namespace", "default", "--bind-address", "127.0.0.1:0"]);
    let serving = Running(serving.stderr(Stdio::null()).spawn()?);
    let step = Step::begin(format!("{rounds} heartbeats of each of {nodes} Nodes"));
    let mut follower = Command::new(follower);
    follower.arg(plane.kubeconfig());
    follower.args([nodes.to_string(), rounds.to_string()]);
    let output = follower.stderr(Stdio::inherit()).output()?;
    ensure!(output.status.success(), "following ended badly");
    step.done("");
    let mut found: Found =
        serde_json::from_slice(&output.stdout).context("what the follower printed")?;
    found.controller_peak_kib = serving.peak_kib()?;
    found.controller_cpu_ms = serving.cpu_ms()?;
    drop(serving);
    plane.end()?;
    Ok(found)
}

/// A program that ends with this value.
struct Running(Child);

impl Running {
    /// `VmHWM` of `/proc/PID/status`.
    fn peak_kib(&self) -> anyhow::Result<u64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.0.id()))?;
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let peak = peak.and_then(|peak| peak.trim().strip_suffix(" kB")?.parse().ok());
        peak.context("the controller ended by itself")
    }

    /// User and system time, fields 14 and 15 of `/proc/PID/stat`, in hundredths of a second (proc(5)).
    fn cpu_ms(&self) -> anyhow::Result<u64> {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.0.id()))?;
        let (_, fields) = stat.rsplit_once(')').context("an odd stat")?;
        let times = fields.split_whitespace().skip(11).take(2);
        let ticks: u64 = times.map(str::parse::<u64>).sum::<Result<_, _>>()?;
        Ok(ticks * 10)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself.
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

fn table(found: &Found) -> String {
    let sum = |bytes: &Bytes| bytes.values().sum::<u64>();
    let lists = Both {
        nodes: sum(&found.lists.nodes),
        map: sum(&found.lists.map),
    };
    let hour = |all: &Bytes, lists: u64| (sum(all) - lists) * HOUR / found.rounds.max(1);
    let hour = Both {
        nodes: hour(&found.all.nodes, lists.nodes),
        map: hour(&found.all.map, lists.map),
    };
    // What comes of the own Node alone does not grow with the cluster.
    let grown = |bytes: u64| bytes * LARGE / found.nodes.max(1);
    let row = |what: &str, nodes: u64, map: u64| {
        format!("| {what} | {} | {} |\n", amount(nodes), amount(map))
    };
    let mut text = format!(
        "{} Nodes of {} bytes each, {} heartbeats of each in {} s\n\n| received by one agent | Nodes | map |\n| --- | --- | --- |\n",
        found.nodes, found.node_bytes, found.rounds, found.seconds
    );
    text += &row("first lists", lists.nodes, lists.map);
    text += &row("an hour of heartbeats", hour.nodes, hour.map);
    text += &row(
        &format!("first lists, {LARGE} Nodes"),
        grown(lists.nodes),
        grown(lists.map),
    );
    text += &row(
        &format!("an hour of heartbeats, {LARGE} Nodes"),
        grown(hour.nodes),
        hour.map,
    );
    text + &format!(
        "\nthe controller took at most {} of memory, and {} ms of a processor\n",
        amount(found.controller_peak_kib * 1_024),
        found.controller_cpu_ms
    )
}

/// In the unit that suits.
fn amount(bytes: u64) -> String {
    match bytes {
        0..10_000 => format!("{bytes} B"),
        10_000..10_000_000 => format!("{} kB", bytes / 1_000),
        _ => format!("{} MB", bytes / 1_000_000),
    }
}
