//! Writes a cluster as Kubernetes YAML for `ipvs-topo render --cluster`.

mod frontends;
mod moment;
mod policy;

use std::fmt::Write;

use serde_json::{Map, Value, json};
use topology_core::model::{EndpointSlice, FrontendKind, Labels, Node, Service};
use topology_core::policy::{
    EmptyTier, Level, LevelKey, MinReady, Mode, OnNoMatch, Policy, PolicySource, Weighting,
};

use crate::cluster::Cluster;

/// The whole cluster, one document for each object.
pub(crate) fn of(cluster: &Cluster) -> String {
    let namespaces = cluster.namespaces.iter().map(|(name, labels)| {
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": map(labels)}})
    });
    let objects = namespaces
        .chain(cluster.nodes.iter().map(|node| self::node(cluster, node)))
        .chain(cluster.services.iter().map(service))
        .chain(cluster.slices.iter().map(slice))
        .chain(cluster.policies.iter().map(policy::object))
        .chain(cluster.drains.iter().map(policy::drain));
    let mut text = String::new();
    for object in objects {
        text.push_str("---\n");
        block(&mut text, &object, 0);
    }
    text
}

/// Block style, with every scalar in JSON notation.
fn block(text: &mut String, value: &Value, depth: usize) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                write!(text, "{:depth$}{key}:", "").unwrap();
                nested(text, value, depth);
            }
        }
        Value::Array(items) => {
            for item in items {
                write!(text, "{:depth$}-", "").unwrap();
                nested(text, item, depth);
            }
        }
        scalar => {
            writeln!(text, "{:depth$}{scalar}", "").unwrap();
        }
    }
}

fn nested(text: &mut String, value: &Value, depth: usize) {
    let is_empty =
        value.as_object().is_some_and(Map::is_empty) || value.as_array().is_some_and(Vec::is_empty);
    if is_empty || !(value.is_object() || value.is_array()) {
        writeln!(text, " {value}").unwrap();
    } else {
        text.push('\n');
        block(text, value, depth + 2);
    }
}

fn map(labels: &Labels) -> Value {
    labels
        .iter()
        .map(|(key, value)| (key.to_string(), json!(value)))
        .collect()
}

fn node(cluster: &Cluster, node: &Node) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": node.name, "labels": map(&node.labels)},
        "status": {
            "addresses": frontends::node_addresses(cluster, node),
            "allocatable": {"cpu": format!("{}m", node.cpu_milli)},
            "conditions": [{"type": "Ready", "status": if node.ready { "True" } else { "False" }}],
        },
    })
}

fn service(service: &Service) -> Value {
    let mut annotations = Map::new();
    let mut spec = Map::new();
    if let Some(name) = &service.named_policy {
        annotations.insert("topology.ipvs-topo.io/policy".to_owned(), json!(name));
    }
    match service.policy.as_deref() {
        Some(policy) if policy.source == PolicySource::TopologyKeys => {
            let keys: Vec<String> = policy.levels.iter().map(|level| full(&level.key)).collect();
            spec.insert("topologyKeys".to_owned(), json!(keys));
        }
        Some(policy) => annotate(policy, &mut annotations),
        None => {}
    }
    let addresses = frontends::addresses(service, FrontendKind::ClusterIp);
    let families = addresses
        .iter()
        .map(|address| if address.is_ipv4() { "IPv4" } else { "IPv6" });
    spec.extend([
        ("clusterIP".to_owned(), json!(addresses.first())),
        ("clusterIPs".to_owned(), json!(addresses)),
        ("ipFamilies".to_owned(), json!(families.collect::<Vec<_>>())),
    ]);
    let (external, status) = frontends::external(service);
    spec.extend(external);
    json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "namespace": service.name.namespace,
            "name": service.name.name,
            "labels": map(&service.labels),
            "annotations": annotations,
        },
        "spec": spec,
        "status": status,
    })
}

fn annotate(policy: &Policy, annotations: &mut Map<String, Value>) {
    let mut say = |name: &str, value: String| {
        annotations.insert(
            format!("topology.ipvs-topo.io/{name}"),
            Value::String(value),
        );
    };
    if let Some(scheduler) = policy.scheduler {
        say("scheduler", scheduler.to_string());
    }
    if policy.adds {
        say("avoid", avoided(policy));
        return;
    }
    say("mode", policy.mode.as_str().to_owned());
    let list = |part: &dyn Fn(&Level) -> Option<String>| {
        policy
            .levels
            .iter()
            .filter_map(part)
            .collect::<Vec<_>>()
            .join(",")
    };
    if policy.mode == Mode::None {
        return;
    }
    if policy.mode == Mode::Weighted {
        say(
            "weights",
            list(&|level| Some(format!("{}={}", level.key, level.weight))),
        );
    } else {
        say("keys", list(&|level| Some(level.key.to_string())));
    }
    let least = least(policy);
    if !least.is_empty() {
        say("min-ready", least);
    }
    if policy.empty_tier == EmptyTier::Renormalize {
        say("empty-tier", "renormalize".to_owned());
    }
    if policy.weighting == Weighting::EndpointBias {
        say("weighting", "endpoint-bias".to_owned());
    }
    if let Some(percent) = policy.overprovision {
        say("overprovision", percent.to_string());
    }
    if let Some(percent) = policy.max_overload {
        say("max-overload", percent.to_string());
    }
    if !policy.avoid.is_empty() {
        say("avoid", avoided(policy));
    }
    if policy.on_no_match == OnNoMatch::Drop {
        say("on-no-match", "drop".to_owned());
    }
    if policy.slow_start != 0 {
        say("slow-start", policy.slow_start.to_string());
    }
}

/// `node,zone:soft`.
fn avoided(policy: &Policy) -> String {
    let avoid = policy
        .avoid
        .iter()
        .map(|avoid| format!("{}{}", avoid.key, if avoid.soft { ":soft" } else { "" }));
    avoid.collect::<Vec<_>>().join(",")
}

/// `zone=2,zone=50%`.
fn least(policy: &Policy) -> String {
    let parts = policy.levels.iter().flat_map(|level| {
        let MinReady { count, percent } = level.min_ready;
        let count = (count != 1).then(|| format!("{}={count}", level.key));
        let percent = (percent != 0).then(|| format!("{}={percent}%", level.key));
        count.into_iter().chain(percent)
    });
    parts.collect::<Vec<_>>().join(",")
}

/// The label key in full.
fn full(key: &LevelKey) -> String {
    match key {
        LevelKey::Node => "kubernetes.io/hostname".to_owned(),
        LevelKey::Any => "*".to_owned(),
        LevelKey::Label(key) => key.to_string(),
    }
}

fn slice(slice: &EndpointSlice) -> Value {
    let endpoints = slice.endpoints.iter().map(|endpoint| {
        let mut object = Map::from_iter([
            ("addresses".to_owned(), json!([endpoint.address])),
            (
                "conditions".to_owned(),
                json!({"ready": endpoint.ready, "serving": endpoint.serving, "terminating": endpoint.terminating}),
            ),
        ]);
        object.extend(endpoint.node.as_ref().map(|node| ("nodeName".to_owned(), json!(node))));
        object.extend(endpoint.zone.as_ref().map(|zone| ("zone".to_owned(), json!(zone))));
        let hints = endpoint.hints.as_ref().map(|hints| {
            let names = |names: &[std::sync::Arc<str>]| names.iter().map(|name| json!({"name": name})).collect::<Vec<_>>();
            json!({"forZones": names(&hints.zones), "forNodes": names(&hints.nodes)})
        });
        object.extend(hints.map(|hints| ("hints".to_owned(), hints)));
        Value::Object(object)
    });
    let ports = slice.ports.iter().map(
        |port| json!({"name": port.name, "protocol": port.protocol.to_string(), "port": port.port}),
    );
    json!({
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {
            "namespace": slice.name.namespace,
            "name": slice.name.name,
            "labels": {"kubernetes.io/service-name": slice.service},
        },
        "addressType": slice.family.to_string(),
        "ports": ports.collect::<Vec<_>>(),
        "endpoints": endpoints.collect::<Vec<_>>(),
    })
}
