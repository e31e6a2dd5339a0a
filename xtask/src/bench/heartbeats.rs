//! `cargo xtask bench --nodes`: measures what an agent receives in an hour of heartbeats, from Nodes and from the map.

use std::collections::BTreeMap;
use std::fs;
use std::process::{Child, Command, ExitCode, Stdio};

use anyhow::{Context as _, ensure};
use serde::{Deserialize, Serialize};

use super::args::Args;
use testbed::cargo;
use testbed::controlplane::{ScopedControlPlane, Version};
use testbed::paths;
use testbed::vm::command;
use testbed::vm::progress::ProgressLine;

/// Heartbeats of a Node in an hour: kubelet sends one every five minutes while nothing changes.
const HOUR: u64 = 12;
/// The cluster size for which the table extrapolates.
const LARGE: u64 = 15_000;

/// The output of the example `heartbeats` of `cluster`, and the costs of the controller.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Measurement {
    nodes: u64,
    rounds: u64,
    seconds: u64,
    /// Size of a Node as JSON.
    node_bytes: u64,
    /// Received until the end of the first lists.
    lists: BySource<Bytes>,
    /// Received in total.
    all: BySource<Bytes>,
    /// Events after the first lists.
    changes: BySource<u64>,
    /// Peak memory of the controller, built with debug information, in KiB.
    #[serde(default)]
    controller_peak_kib: u64,
    /// CPU time of the controller since its start.
    #[serde(default)]
    controller_cpu_ms: u64,
}

type Bytes = BTreeMap<String, u64>;

/// One value for each source of Nodes.
#[derive(Debug, Serialize, Deserialize)]
struct BySource<T> {
    nodes: T,
    map: T,
}

/// Measures, prints the table and writes `scale.json`.
pub(super) fn run(args: &Args, nodes: u64) -> anyhow::Result<ExitCode> {
    let measurement = match &args.from {
        Some(from) => serde_json::from_slice(&fs::read(from)?)?,
        None => measure(nodes, args.heartbeats)?,
    };
    let mut json = serde_json::to_string_pretty(&measurement)?;
    json.push('\n');
    fs::create_dir_all(&args.out)?;
    fs::write(args.out.join("scale.json"), json)?;
    anstream::println!("{}", table(&measurement));
    Ok(ExitCode::SUCCESS)
}

fn measure(nodes: u64, rounds: u64) -> anyhow::Result<Measurement> {
    let step = ProgressLine::begin("building the controller and the watching client");
    let [follower, controller] = [
        ("--example", "heartbeats"),
        ("--bin", "ipvs-topo-controller"),
    ]
    .map(|(kind, name)| cargo::build(cargo::whole("build").args([kind, name]), name));
    let (follower, controller) = (follower?, controller?);
    step.done("");
    let plane = ScopedControlPlane::start(Version::Newest)?;
    let crds = paths::root().join("manifests/crds");
    command::output(plane.part("kubectl").args(["apply", "-k"]).arg(crds))?;
    let mut serving = Command::new(controller);
    serving.arg("--kubeconfig").arg(plane.kubeconfig());
    serving.args(["--namespace", "default", "--bind-address", "127.0.0.1:0"]);
    let serving = RunningController(serving.stderr(Stdio::null()).spawn()?);
    let step = ProgressLine::begin(format!("{rounds} heartbeats of each of {nodes} Nodes"));
    let mut follower = Command::new(follower);
    follower.arg(plane.kubeconfig());
    follower.args([nodes.to_string(), rounds.to_string()]);
    let output = follower.stderr(Stdio::inherit()).output()?;
    ensure!(output.status.success(), "the watching client failed");
    step.done("");
    let mut measurement: Measurement =
        serde_json::from_slice(&output.stdout).context("what the follower printed")?;
    measurement.controller_peak_kib = serving.peak_kib()?;
    measurement.controller_cpu_ms = serving.cpu_ms()?;
    drop(serving);
    plane.end()?;
    Ok(measurement)
}

/// The controller; killed when dropped.
struct RunningController(Child);

impl RunningController {
    /// Reads `VmHWM` of `/proc/PID/status`.
    fn peak_kib(&self) -> anyhow::Result<u64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.0.id()))?;
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let peak = peak.and_then(|peak| peak.trim().strip_suffix(" kB")?.parse().ok());
        peak.context("the controller exited")
    }

    /// Reads user and system time: fields 14 and 15 of `/proc/PID/stat`, in hundredths of a second (proc(5)).
    fn cpu_ms(&self) -> anyhow::Result<u64> {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.0.id()))?;
        let (_, fields) = stat.rsplit_once(')').context("an odd stat")?;
        let times = fields.split_whitespace().skip(11).take(2);
        let ticks: u64 = times.map(str::parse::<u64>).sum::<Result<_, _>>()?;
        Ok(ticks * 10)
    }
}

impl Drop for RunningController {
    fn drop(&mut self) {
        // It may have exited already.
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

fn table(measurement: &Measurement) -> String {
    let sum = |bytes: &Bytes| bytes.values().sum::<u64>();
    let lists = BySource {
        nodes: sum(&measurement.lists.nodes),
        map: sum(&measurement.lists.map),
    };
    let hour = |all: &Bytes, lists: u64| (sum(all) - lists) * HOUR / measurement.rounds.max(1);
    let hour = BySource {
        nodes: hour(&measurement.all.nodes, lists.nodes),
        map: hour(&measurement.all.map, lists.map),
    };
    // Events of the agent's own Node do not grow with the cluster.
    let grown = |bytes: u64| bytes * LARGE / measurement.nodes.max(1);
    let row = |what: &str, nodes: u64, map: u64| {
        format!("| {what} | {} | {} |\n", amount(nodes), amount(map))
    };
    let mut text = format!(
        "{} Nodes of {} bytes each, {} heartbeats of each in {} s\n\n| received by one agent | Nodes | map |\n| --- | --- | --- |\n",
        measurement.nodes, measurement.node_bytes, measurement.rounds, measurement.seconds
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
        "\nthe controller used at most {} of memory, and {} ms of CPU time\n",
        amount(measurement.controller_peak_kib * 1_024),
        measurement.controller_cpu_ms
    )
}

/// Formats an amount in a suitable unit.
fn amount(bytes: u64) -> String {
    match bytes {
        0..10_000 => format!("{bytes} B"),
        10_000..10_000_000 => format!("{} kB", bytes / 1_000),
        _ => format!("{} MB", bytes / 1_000_000),
    }
}
