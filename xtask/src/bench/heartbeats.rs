//! `cargo xtask bench --nodes`: measures what an agent receives in an hour of heartbeats, from Nodes and from the map.

use std::collections::BTreeMap;
use std::process::ExitCode;

use anyhow::Context as _;
use serde::{Deserialize, Serialize};

use super::args::Args;
use super::large_cluster::{ControllerCosts, LargeCluster, Programs, amount};
use super::measured::measured;
use testbed::vm::progress::ProgressLine;

/// Heartbeats of a Node in an hour: kubelet sends one every five minutes while nothing changes.
const HOUR: u64 = 12;
/// The cluster size for which the table extrapolates.
const LARGE: u64 = 15_000;

/// The output of the example `large_cluster` of `cluster`, and the costs of the controller.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct HeartbeatMeasurement {
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
    #[serde(flatten)]
    controller: ControllerCosts,
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
    let measurement = measured(args, "scale.json", || measure(nodes, args.heartbeats))?;
    anstream::println!("{}", table(&measurement));
    Ok(ExitCode::SUCCESS)
}

fn measure(nodes: u64, rounds: u64) -> anyhow::Result<HeartbeatMeasurement> {
    let programs = Programs::build()?;
    let cluster = LargeCluster::start()?;
    let controller = cluster.run(&programs, &[])?;
    let step = ProgressLine::begin(format!("{rounds} heartbeats of each of {nodes} Nodes"));
    let client = cluster.client(&programs, "heartbeats", &[nodes, rounds])?;
    step.done("");
    let mut measurement: HeartbeatMeasurement =
        serde_json::from_slice(&client).context("the output of the watching client")?;
    measurement.controller = ControllerCosts::of(&controller)?;
    drop(controller);
    cluster.end()?;
    Ok(measurement)
}

fn table(measurement: &HeartbeatMeasurement) -> String {
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
    text + &format!("\n{}\n", measurement.controller)
}
