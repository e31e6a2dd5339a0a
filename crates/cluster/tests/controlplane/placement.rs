//! Random placements of endpoints: Pods with many labels, and Services that each select some Pods.

use std::hash::{BuildHasher as _, BuildHasherDefault, DefaultHasher};

use serde_json::{Map, Value, json};

const PODS: usize = 60;

/// Number of Pods on a Node without a zone. One of them is enough to prevent hints for a Service.
const LOST: usize = 2;

pub(crate) struct Pod {
    pub(crate) object: Value,
    pub(crate) status: Value,
}

pub(crate) struct Placement {
    pub(crate) name: String,
    /// Number of Pods that it selects.
    pub(crate) pods: usize,
    /// Its `trafficDistribution`; `None` requests Topology Aware Hints.
    pub(crate) distribution: Option<&'static str>,
}

/// A number below `sides`, derived from the other arguments.
fn roll(sides: usize, text: &str, number: usize) -> usize {
    let hash = BuildHasherDefault::<DefaultHasher>::default().hash_one((text, number));
    usize::try_from(hash % 1_000_003).unwrap() % sides
}

/// Whether a Service selects a Pod. Some Services select nearly all Pods, some only two or three,
/// and most Pods are in one zone.
fn selects(service: &str, pod: usize) -> bool {
    if service.starts_with("probe") || service.starts_with("more") {
        return pod >= LOST;
    }
    let percent = [4, 8, 15, 30, 60][roll(5, service, PODS)];
    let preferred = roll(3, service, PODS + 1);
    let percent = if pod < LOST {
        percent / 4
    } else if zone(pod) == preferred {
        percent * 2
    } else {
        percent
    };
    roll(100, service, pod) < percent
}

/// The index of the zone of a Pod.
fn zone(pod: usize) -> usize {
    roll(3, "zone", pod)
}

/// A label for each Service that selects the Pod.
fn labels(pod: usize) -> Map<String, Value> {
    let names = (0..120).map(|number| format!("s{number}"));
    let names = names
        .chain((0..20).flat_map(|number| ["probe", "more"].map(|word| format!("{word}-{number}"))));
    names
        .filter(|name| selects(name, pod))
        .map(|name| (name, json!("y")))
        .collect()
}

/// Pods on `nodes`; the first [`LOST`] Pods are on the last Node.
pub(crate) fn pods(nodes: &[&str; 8]) -> Vec<Pod> {
    // The first two zones have two Nodes each, the last zone has three.
    let of_zone: [&[&str]; 3] = [&nodes[0..2], &nodes[2..4], &nodes[4..7]];
    let node = |pod: usize| {
        if pod < LOST {
            return nodes[7];
        }
        let nodes = of_zone[zone(pod)];
        nodes[roll(nodes.len(), "node", pod)]
    };
    let pod = |pod: usize| {
        let ready = if roll(100, "ready", pod) < 88 {
            "True"
        } else {
            "False"
        };
        let address = format!("10.246.0.{}", pod + 1);
        Pod {
            object: json!({
                "apiVersion": "v1", "kind": "Pod", "metadata": {"name": format!("p{pod}"), "labels": labels(pod)},
                "spec": {"nodeName": node(pod), "containers": [{"name": "it", "image": "none"}]},
            }),
            status: json!({
                "phase": "Running", "podIP": address, "podIPs": [{"ip": address}],
                "conditions": [{"type": "Ready", "status": ready}],
            }),
        }
    };
    (0..PODS).map(pod).collect()
}

impl Placement {
    fn new(name: &str, distribution: Option<&'static str>) -> Self {
        let pods = (0..PODS).filter(|pod| selects(name, *pod)).count();
        Self {
            name: name.to_owned(),
            pods,
            distribution,
        }
    }

    /// Selects all Pods that have a zone.
    pub(crate) fn probe(name: &str) -> Self {
        Self::new(name, None)
    }

    /// The Service; `mode` is the name of the annotation for Topology Aware Hints.
    pub(crate) fn service(&self, mode: &str) -> Value {
        let mut service = json!({
            "apiVersion": "v1", "kind": "Service", "metadata": {"name": self.name},
            "spec": {"selector": {(&*self.name): "y"}, "ports": [{"port": 80}]},
        });
        match self.distribution {
            Some(distribution) => service["spec"]["trafficDistribution"] = json!(distribution),
            None => service["metadata"]["annotations"] = json!({mode: "Auto"}),
        }
        service
    }
}

/// `auto` Services with Topology Aware Hints, and `more` with one of `distributions`.
pub(crate) fn placements(
    auto: usize,
    distributions: &[&'static str],
    more: usize,
) -> Vec<Placement> {
    let distribution = |number: usize| {
        let number = number.checked_sub(auto)?;
        distributions.get(number % distributions.len()).copied()
    };
    (0..auto + more)
        .map(|number| Placement::new(&format!("s{number}"), distribution(number)))
        .collect()
}
