//! What clients receive that watch Pods, PodLocators or PodMaps, while Pods are replaced.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use kube_io::list_watch::{Resource, Watcher, WatcherChange};
use kube_io::{Access, ApiError, Connection};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval, sleep};

use crate::{Outcome, pod};

const PODS: &str = "/api/v1/pods";
const LOCATORS: &str = "/apis/topology.ipvs-topo.io/v1alpha1/podlocators";
const MAPS: &str = "/apis/topology.ipvs-topo.io/v1alpha1/podmaps";
/// How long the controller may take for the first objects.
const PATIENCE: Duration = Duration::from_secs(3_600);
/// How long the watches go on after the last Pod; an object waits ten seconds before its next write.
const AFTERWARDS: Duration = Duration::from_secs(20);
/// In which so many Pods are replaced as there are: 1 % in a minute.
const LIFETIME: Duration = Duration::from_secs(6_000);

pub(crate) async fn measure(
    access: &Access,
    nodes: usize,
    pods: usize,
    length: Duration,
) -> Outcome<Value> {
    let api = Connection::open(access).await?;
    let began = Instant::now();
    until_count(&api, MAPS, nodes.min(pods)).await?;
    let mapped = began.elapsed().as_secs();
    until_count(&api, LOCATORS, pods).await?;
    let located = began.elapsed().as_secs();

    let mut of_pods = WatchingClient::begin(access, PODS, |_| Vec::new()).await?;
    let mut of_locators = WatchingClient::begin(access, LOCATORS, locator_pods).await?;
    let mut of_maps = WatchingClient::begin(access, MAPS, map_pods).await?;

    let pause = LIFETIME / u32::try_from(pods)?;
    let count = (length.as_nanos() / pause.as_nanos()).try_into()?;
    let replaced = replace(&api, nodes, pods, count, pause);
    tokio::pin!(replaced);
    let reported = loop {
        tokio::select! {
            reported = &mut replaced => break reported?,
            done = of_pods.take() => done?,
            done = of_locators.take() => done?,
            done = of_maps.take() => done?,
        }
    };
    Ok(json!({
        "nodes": nodes, "pods": pods, "seconds": length.as_secs(), "replaced": count,
        "mappedSeconds": mapped, "locatedSeconds": located,
        "watched": {
            "pods": of_pods.report(&reported),
            "podLocators": of_locators.report(&reported),
            "podMaps": of_maps.report(&reported),
        },
    }))
}

/// Waits until a collection has so many objects.
async fn until_count(api: &Connection, path: &str, expected: usize) -> Outcome<()> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let page = api.list(&format!("{path}?limit=1")).await?;
        let first = page
            .get("items")
            .and_then(Value::as_array)
            .map_or(0, Vec::len);
        let rest = page.pointer("/metadata/remainingItemCount");
        let rest: usize = rest
            .and_then(Value::as_u64)
            .unwrap_or_default()
            .try_into()?;
        let found = first + rest;
        if found == expected {
            return Ok(());
        }
        if Instant::now() > deadline {
            return Err(format!("{path} has {found} of {expected} objects").into());
        }
        sleep(Duration::from_secs(1)).await;
    }
}

/// Replaces `count` Pods, one in each `pause`: the last ones by new ones. Returns when the address of each new Pod was
/// reported; [`AFTERWARDS`] is over then.
async fn replace(
    api: &Connection,
    nodes: usize,
    pods: usize,
    count: usize,
    pause: Duration,
) -> Outcome<HashMap<String, Instant>> {
    let mut tick = interval(pause);
    tick.set_missed_tick_behavior(MissedTickBehavior::Burst);
    let mut tasks = JoinSet::new();
    for number in 0..count {
        tick.tick().await;
        let (api, old, new) = (api.clone(), pods - 1 - number, pods + number);
        tasks.spawn(async move {
            pod::start(&api, new, nodes).await?;
            let reported = Instant::now();
            pod::stop(&api, old).await?;
            Ok::<_, ApiError>((pod::name(new), reported))
        });
    }
    let mut reported = HashMap::new();
    while let Some(done) = tasks.join_next().await {
        let (name, at) = done??;
        reported.insert(name, at);
    }
    sleep(AFTERWARDS).await;
    Ok(reported)
}

/// A client that watches one collection.
struct WatchingClient {
    api: Connection,
    watcher: Watcher<Value>,
    /// The names of the Pods that an object locates.
    pods_of: fn(&Value) -> Vec<&str>,
    objects: usize,
    /// Of all objects, as JSON.
    object_bytes: usize,
    /// Received until the end of the first list.
    list: u64,
    /// Changes after it.
    changes: usize,
    /// When a Pod came for the first time in a change.
    seen: HashMap<String, Instant>,
}

impl WatchingClient {
    /// Connects, and reads the first list.
    async fn begin(
        access: &Access,
        path: &'static str,
        pods_of: fn(&Value) -> Vec<&str>,
    ) -> Outcome<Self> {
        let api = Connection::open(access).await?;
        let mut watcher: Watcher<Value> = Watcher::new(api.clone(), Resource::new(path));
        let (mut objects, mut object_bytes) = (0, 0);
        loop {
            match watcher.next().await {
                WatcherChange::Exists(object) => {
                    objects += 1;
                    object_bytes += object.to_string().len();
                }
                WatcherChange::Listed => break,
                WatcherChange::Begin | WatcherChange::Gone(_) => {}
                WatcherChange::Trouble(error) => return Err(error.into()),
            }
        }
        let list = received(&api);
        Ok(Self {
            api,
            watcher,
            pods_of,
            objects,
            object_bytes,
            list,
            changes: 0,
            seen: HashMap::new(),
        })
    }

    async fn take(&mut self) -> Outcome<()> {
        match self.watcher.next().await {
            WatcherChange::Exists(object) => {
                self.changes += 1;
                for name in (self.pods_of)(&object) {
                    if !self.seen.contains_key(name) {
                        self.seen.insert(name.to_owned(), Instant::now());
                    }
                }
            }
            WatcherChange::Gone(_) => self.changes += 1,
            WatcherChange::Begin | WatcherChange::Listed => {
                return Err("a watch began again, which counts its objects twice".into());
            }
            WatcherChange::Trouble(error) => return Err(error.into()),
        }
        Ok(())
    }

    fn report(&self, reported: &HashMap<String, Instant>) -> Value {
        let mut delays: Vec<u128> = reported
            .iter()
            .filter_map(|(name, at)| {
                let seen = self.seen.get(name)?;
                Some(seen.saturating_duration_since(*at).as_millis())
            })
            .collect();
        delays.sort_unstable();
        json!({
            "objects": self.objects, "objectBytes": self.object_bytes,
            "list": self.list, "churn": received(&self.api) - self.list, "changes": self.changes,
            "located": delays.len(), "medianDelayMs": delays.get(delays.len() / 2), "mostDelayMs": delays.last(),
        })
    }
}

/// Bytes before decompression.
fn received(api: &Connection) -> u64 {
    api.count().bytes.values().sum()
}

fn locator_pods(locator: &Value) -> Vec<&str> {
    let name = locator.pointer("/metadata/name").and_then(Value::as_str);
    name.into_iter().collect()
}

/// The names of Pods in a PodMap, without the namespace.
fn map_pods(map: &Value) -> Vec<&str> {
    let pods = map.pointer("/spec/pods").and_then(Value::as_object);
    let pods = pods.into_iter().flat_map(serde_json::Map::values);
    pods.filter_map(|pod| Some(pod.as_str()?.split_once('/')?.1))
        .collect()
}
