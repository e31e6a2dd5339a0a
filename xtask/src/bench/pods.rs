//! `cargo xtask bench --nodes COUNT --pods COUNT`: measures what it costs to locate Pods with PodMaps and PodLocators.

use std::process::ExitCode;

use anyhow::Context as _;
use serde::{Deserialize, Serialize};

use super::args::Args;
use super::large_cluster::{ControllerCosts, LargeCluster, Programs, amount};
use super::measured::measured;
use testbed::vm::progress::ProgressLine;

/// The output of the example `large_cluster` of `cluster`, and the costs of the controller and of etcd.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct PodMeasurement {
    nodes: u64,
    pods: u64,
    /// Seconds in which Pods were replaced.
    seconds: u64,
    replaced: u64,
    /// Seconds until each Node had its first PodMap.
    mapped_seconds: u64,
    /// Seconds until each Pod had its PodLocator.
    located_seconds: u64,
    watched: WatchedCollections,
    /// Size of etcd's database without Nodes and Pods, with them, and at the end.
    #[serde(default)]
    etcd_bytes: [u64; 3],
    #[serde(flatten)]
    controller: ControllerCosts,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct WatchedCollections {
    pods: CollectionReadings,
    pod_locators: CollectionReadings,
    pod_maps: CollectionReadings,
}

/// What the client of one collection received.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct CollectionReadings {
    objects: u64,
    /// Size of all objects as JSON.
    object_bytes: u64,
    /// Received until the end of the first list.
    list: u64,
    /// Received after it.
    churn: u64,
    /// Changes after it.
    changes: u64,
    /// New Pods that came in a change.
    located: u64,
    /// Time from the status with the Pod's address to the change.
    median_delay_ms: Option<u64>,
    most_delay_ms: Option<u64>,
}

/// Measures, prints the table and writes `scale-pods.json`.
pub(super) fn run(args: &Args, nodes: u64, pods: u64) -> anyhow::Result<ExitCode> {
    let measurement = measured(args, "scale-pods.json", || measure(nodes, pods, args.churn))?;
    anstream::println!("{}", table(&measurement));
    Ok(ExitCode::SUCCESS)
}

fn measure(nodes: u64, pods: u64, seconds: u64) -> anyhow::Result<PodMeasurement> {
    let programs = Programs::build()?;
    let cluster = LargeCluster::start()?;
    let empty = cluster.etcd_bytes()?;
    let step = ProgressLine::begin(format!("creating {nodes} Nodes and {pods} Pods"));
    cluster.client(&programs, "pods", &[nodes, pods])?;
    step.done("");
    let with_pods = cluster.etcd_bytes()?;
    let controller = cluster.run(&programs, &["--pod-locator-namespaces", "*"])?;
    let step = ProgressLine::begin(format!(
        "waiting until they are located, then {seconds} s in which 1 % of the Pods are replaced in a minute"
    ));
    let client = cluster.client(&programs, "churn", &[nodes, pods, seconds])?;
    step.done("");
    let mut measurement: PodMeasurement =
        serde_json::from_slice(&client).context("the output of the watching client")?;
    measurement.etcd_bytes = [empty, with_pods, cluster.etcd_bytes()?];
    measurement.controller = ControllerCosts::of(&controller)?;
    drop(controller);
    cluster.end()?;
    Ok(measurement)
}

fn table(measurement: &PodMeasurement) -> String {
    let WatchedCollections {
        pods,
        pod_locators,
        pod_maps,
    } = &measurement.watched;
    let row = |what: &str, value: &dyn Fn(&CollectionReadings) -> String| {
        let values = [pods, pod_locators, pod_maps].map(value);
        format!("| {what} | {} |\n", values.join(" | "))
    };
    let delay = |delay: Option<u64>| delay.map_or("-".to_owned(), |delay| format!("{delay} ms"));
    let second = |sum: u64| sum / measurement.seconds.max(1);
    let mut text = format!(
        "{} Nodes, {} Pods; {} replaced in {} s\n\n",
        measurement.nodes, measurement.pods, measurement.replaced, measurement.seconds
    );
    text += "| watched | Pods | PodLocators | PodMaps |\n| --- | --- | --- | --- |\n";
    text += &row("objects", &|of| of.objects.to_string());
    text += &row("size of all as JSON", &|of| amount(of.object_bytes));
    text += &row("first list", &|of| amount(of.list));
    text += &row("received in a second", &|of| amount(second(of.churn)));
    text += &row("changes", &|of| of.changes.to_string());
    text += &row("a new Pod comes after, median", &|of| {
        delay(of.median_delay_ms)
    });
    text += &row("at most", &|of| delay(of.most_delay_ms));
    let [empty, with_pods, end] = measurement.etcd_bytes.map(amount);
    text + &format!(
        "\nPodMaps complete after {} s, PodLocators after {} s\n\
         etcd's database: {empty}, with Nodes and Pods {with_pods}, at the end {end}\n\
         {}\n",
        measurement.mapped_seconds, measurement.located_seconds, measurement.controller
    )
}
