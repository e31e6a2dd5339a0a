//! What a watching client receives while only heartbeats of Nodes happen, read from the Nodes and
//! from the map; `cargo xtask bench --nodes` runs it beside a controller.
//!
//! `heartbeats KUBECONFIG NODES ROUNDS`: makes so many Nodes, waits for the map of them, follows the cluster twice, has
//! every Node send so many heartbeats as a kubelet would, and prints one JSON object.

#![expect(clippy::print_stdout, reason = "it prints what it measured")]

use std::collections::BTreeMap;
use std::error::Error;
use std::time::{Duration, Instant};

use cluster::api::{NodeSource, watch};
use cluster::event::Completeness;
use cluster::index::Index;
use cluster::source::Watch;
use kube_io::{Access, ApiError, Connection, Patch};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

/// How many requests are under way at a time.
const AT_ONCE: usize = 32;
/// How long nothing may come before everything has come.
const QUIET: Duration = Duration::from_secs(5);
/// How long the map may take.
const PATIENCE: Duration = Duration::from_secs(180);
/// Images of each Node, of the 50 that a kubelet reports at most.
const IMAGES: usize = 15;
/// The Node on which the follower stands.
const OWN: &str = "node-00000.example.internal";

type Outcome<T> = Result<T, Box<dyn Error>>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Outcome<()> {
    let mut arguments = std::env::args().skip(1);
    let mut next = || arguments.next().ok_or("heartbeats KUBECONFIG NODES ROUNDS");
    let kubeconfig = next()?;
    let (nodes, rounds): (usize, usize) = (next()?.parse()?, next()?.parse()?);
    let access = Access::kubeconfig(kubeconfig.as_ref(), "heartbeats");
    let api = Connection::open(&access).await?;
    each(&api, nodes, |api, number| async move {
        create(&api, number).await
    })
    .await?;
    until_mapped(&api, nodes).await?;
    let mapped = NodeSource::Map { own: OWN.into() };
    let nodes_themselves = NodeSource::Nodes { own: OWN.into() };
    let mut by_nodes = Follower::begin(&access, nodes_themselves).await?;
    let mut by_map = Follower::begin(&access, mapped).await?;
    let lists = json!({"nodes": by_nodes.received(), "map": by_map.received()});
    let began = Instant::now();
    for round in 1..=rounds {
        let beat = move |api: Connection, number| async move { beat(&api, number, round).await };
        let sent = each(&api, nodes, beat);
        tokio::pin!(sent);
        // The client reads at once what arrives.
        loop {
            tokio::select! {
                done = &mut sent => break done?,
                taken = by_nodes.take() => taken?,
                taken = by_map.take() => taken?,
            }
        }
    }
    by_nodes.until_quiet().await?;
    by_map.until_quiet().await?;
    let seconds = began.elapsed().as_secs();
    let object = api.get(&format!("/api/v1/nodes/{OWN}")).await?;
    let found = json!({
        "nodes": nodes, "rounds": rounds, "seconds": seconds, "nodeBytes": object.to_string().len(),
        "lists": lists, "all": {"nodes": by_nodes.received(), "map": by_map.received()},
        "changes": {"nodes": by_nodes.changes, "map": by_map.changes},
    });
    println!("{found}");
    Ok(())
}

/// Does something for every Node, many at a time.
async fn each<F>(
    api: &Connection,
    nodes: usize,
    work: impl Fn(Connection, usize) -> F,
) -> Outcome<()>
where
    F: Future<Output = Result<(), ApiError>> + Send + 'static,
{
    let mut tasks = JoinSet::new();
    for number in 0..nodes {
        if tasks.len() >= AT_ONCE
            && let Some(done) = tasks.join_next().await
        {
            done??;
        }
        tasks.spawn(work(api.clone(), number));
    }
    while let Some(done) = tasks.join_next().await {
        done??;
    }
    Ok(())
}

fn name(number: usize) -> String {
    format!("node-{number:05}.example.internal")
}

/// Makes a Node as large as those of a small cloud machine.
async fn create(api: &Connection, number: usize) -> Result<(), ApiError> {
    let (name, zone) = (name(number), ["a", "b", "c"].get(number % 3));
    let images: Vec<Value> = (0..IMAGES).map(image).collect();
    let resources = json!({
        "cpu": "3920m", "memory": "15076868Ki", "pods": "110", "ephemeral-storage": "95491281146",
        "hugepages-1Gi": "0", "hugepages-2Mi": "0",
    });
    let node = json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {
                "kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux", "kubernetes.io/hostname": name,
                "node.kubernetes.io/instance-type": "m5.xlarge", "topology.kubernetes.io/region": "r",
                "topology.kubernetes.io/zone": zone, "example.com/rack": format!("rack-{}", number / 20),
            },
            "annotations": {"volumes.kubernetes.io/controller-managed-attach-detach": "true"},
        },
        "spec": {"podCIDR": format!("10.{}.{}.0/24", number / 256, number % 256)},
        "status": {
            "addresses": [
                {"type": "InternalIP", "address": format!("172.16.{}.{}", number / 250, number % 250)},
                {"type": "Hostname", "address": name},
            ],
            "allocatable": resources, "capacity": resources, "conditions": conditions(0), "images": images,
            "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
            "nodeInfo": {
                "architecture": "amd64", "bootID": "6f0f2fcd-9bcf-4f0f-8e3c-2a4ae0c6e7a1",
                "containerRuntimeVersion": "containerd://2.1.4", "kernelVersion": "6.12.48+deb13-cloud-amd64",
                "kubeProxyVersion": "", "kubeletVersion": "v1.36.3", "machineID": "ec2b1c5e4f8f4f5cb2e0bb0cb2f7c9c4",
                "operatingSystem": "linux", "osImage": "Debian GNU/Linux 13 (trixie)",
                "systemUUID": "ec2b1c5e-4f8f-4f5c-b2e0-bb0cb2f7c9c4",
            },
        },
    });
    api.create("/api/v1/nodes", &node).await.map(drop)
}

fn image(number: usize) -> Value {
    let digest = format!("{number:02x}").repeat(32);
    let name = format!("registry.example.com/team-{}/service-{number}", number % 4);
    json!({"names": [format!("{name}@sha256:{digest}"), format!("{name}:v1.{number}.0")], "sizeBytes": 51_234_567 + number})
}

/// The conditions that a kubelet reports, as of a heartbeat.
fn conditions(round: usize) -> Value {
    let (hour, minute) = (round / 12, 5 * (round % 12));
    let time = format!("2026-11-22T{hour:02}:{minute:02}:00Z");
    let condition = |kind: &str, status: &str, reason: &str, message: &str| {
        json!({
            "type": kind, "status": status, "reason": reason, "message": message,
            "lastHeartbeatTime": time, "lastTransitionTime": "2026-11-20T08:00:00Z",
        })
    };
    json!([
        condition(
            "MemoryPressure",
            "False",
            "KubeletHasSufficientMemory",
            "kubelet has sufficient memory available"
        ),
        condition(
            "DiskPressure",
            "False",
            "KubeletHasNoDiskPressure",
            "kubelet has no disk pressure"
        ),
        condition(
            "PIDPressure",
            "False",
            "KubeletHasSufficientPID",
            "kubelet has sufficient PID available"
        ),
        condition(
            "Ready",
            "True",
            "KubeletReady",
            "kubelet is posting ready status"
        ),
    ])
}

/// What a kubelet writes every five minutes if nothing has happened.
async fn beat(api: &Connection, number: usize, round: usize) -> Result<(), ApiError> {
    let path = format!("/api/v1/nodes/{}/status", name(number));
    let status = json!({"status": {"conditions": conditions(round)}});
    api.patch(&path, Patch::Merge, &status).await.map(drop)
}

/// Waits until the controller has written down every Node.
async fn until_mapped(api: &Connection, nodes: usize) -> Outcome<()> {
    let deadline = Instant::now() + PATIENCE;
    let path = "/apis/topology.ipvs-topo.io/v1alpha1/topologymaps";
    loop {
        let listed = api.list(path).await?;
        let maps = listed.get("items").and_then(Value::as_array);
        let listed = maps
            .into_iter()
            .flatten()
            .filter_map(|map| map.pointer("/spec/nodes")?.as_object());
        let listed: usize = listed.map(serde_json::Map::len).sum();
        if listed == nodes {
            return Ok(());
        }
        if Instant::now() > deadline {
            return Err(format!("the map lists {listed} of {nodes} Nodes").into());
        }
        sleep(Duration::from_secs(1)).await;
    }
}

/// A client that watches the cluster.
struct Follower {
    watch: Watch,
    index: Index,
    /// Events since everything was known.
    changes: usize,
}

impl Follower {
    async fn begin(access: &Access, nodes: NodeSource) -> Outcome<Self> {
        let mut follower = Self {
            watch: watch(access, nodes)?,
            index: Index::default(),
            changes: 0,
        };
        while follower.index.completeness() != Some(Completeness::Whole) {
            follower.take().await?;
        }
        follower.until_quiet().await?;
        follower.changes = 0;
        Ok(follower)
    }

    async fn take(&mut self) -> Outcome<()> {
        let batch = self.watch.next().await.ok_or("following broke down")?;
        self.changes += batch.events.len();
        self.index.apply(batch);
        Ok(())
    }

    /// Waits until no more bytes come.
    async fn until_quiet(&mut self) -> Outcome<()> {
        loop {
            let before = self.received();
            let until = Instant::now() + QUIET;
            while let Some(left) = until.checked_duration_since(Instant::now()) {
                if let Ok(taken) = timeout(left, self.take()).await {
                    taken?;
                }
            }
            if self.received() == before {
                return Ok(());
            }
        }
    }

    /// Bytes so far, by collection.
    fn received(&self) -> BTreeMap<String, u64> {
        let sync_status = self.watch.sync_status();
        sync_status
            .map(|sync_status| sync_status.count().bytes)
            .unwrap_or_default()
    }
}
