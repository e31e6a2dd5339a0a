//! What a watching client receives while only heartbeats of Nodes happen, read from the Nodes and from the map.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use cluster::api::{NodeSource, watch};
use cluster::event::Completeness;
use cluster::index::Index;
use cluster::source::Watch;
use kube_io::{Access, Connection};
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use crate::{Outcome, each, node};

/// How long nothing may come before everything has come.
const QUIET: Duration = Duration::from_secs(5);
/// How long the map may take.
const PATIENCE: Duration = Duration::from_secs(180);
/// The Node on which the follower stands.
const OWN: &str = "node-00000.example.internal";

pub(crate) async fn measure(access: &Access, nodes: usize, rounds: usize) -> Outcome<Value> {
    let api = Connection::open(access).await?;
    node::create(&api, nodes).await?;
    until_mapped(&api, nodes).await?;
    let mapped = NodeSource::Map { own: OWN.into() };
    let nodes_themselves = NodeSource::Nodes { own: OWN.into() };
    let mut by_nodes = Follower::begin(access, nodes_themselves).await?;
    let mut by_map = Follower::begin(access, mapped).await?;
    let lists = json!({"nodes": by_nodes.received(), "map": by_map.received()});
    let began = Instant::now();
    for round in 1..=rounds {
        let beat =
            move |api: Connection, number| async move { node::beat(&api, number, round).await };
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
    Ok(json!({
        "nodes": nodes, "rounds": rounds, "seconds": seconds, "nodeBytes": object.to_string().len(),
        "lists": lists, "all": {"nodes": by_nodes.received(), "map": by_map.received()},
        "changes": {"nodes": by_nodes.changes, "map": by_map.changes},
    }))
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
