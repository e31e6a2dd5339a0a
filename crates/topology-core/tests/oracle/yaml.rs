//! A cluster as Kubernetes YAML that `ipvs-topo render --cluster` reads.

use std::fmt::Write;

use serde_json::{Map, Value, json};
use topology_core::model::{
    Drain, DrainScope, EndpointSlice, Enforcement, HardServices, Labels, Node, OnLastDomain,
    Operator, Selector, Service, TopologyPolicy, TrafficPolicy,
};
use topology_core::policy::{
    Demand, EmptyTier, Level, LevelKey, MinReady, Mode, OnNoMatch, Policy, PolicySource, Residual,
    Weighting,
};

use crate::cluster::Cluster;

/// The whole cluster, one document for each object.
pub(crate) fn of(cluster: &Cluster) -> String {
    let namespaces = cluster.namespaces.iter().map(|(name, labels)| {
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": map(labels)}})
    });
    let objects = namespaces
        .chain(cluster.nodes.iter().map(node))
        .chain(cluster.services.iter().map(service))
        .chain(cluster.slices.iter().map(slice))
        .chain(cluster.policies.iter().map(policy_object))
        .chain(cluster.drains.iter().map(drain));
    let mut text = String::new();
    for object in objects {
        text.push_str("---\n");
        block(&mut text, &object, 0);
    }
    text
}

/// Block style, with every scalar as JSON writes it.
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

fn node(node: &Node) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": node.name, "labels": map(&node.labels)},
        "status": {
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
    let families = service
        .cluster_ips
        .iter()
        .map(|address| if address.is_ipv4() { "IPv4" } else { "IPv6" });
    let ports = service.ports.iter().map(|port| {
        json!({"name": port.name, "protocol": port.protocol.to_string(), "port": port.port, "targetPort": 8080})
    });
    let internal = match service.internal_traffic_policy {
        TrafficPolicy::Cluster => "Cluster",
        TrafficPolicy::Local => "Local",
    };
    spec.extend([
        ("type".to_owned(), json!("ClusterIP")),
        ("clusterIP".to_owned(), json!(service.cluster_ips.first())),
        ("clusterIPs".to_owned(), json!(service.cluster_ips)),
        ("ipFamilies".to_owned(), json!(families.collect::<Vec<_>>())),
        ("internalTrafficPolicy".to_owned(), json!(internal)),
        ("ports".to_owned(), json!(ports.collect::<Vec<_>>())),
    ]);
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
    })
}

fn annotate(policy: &Policy, annotations: &mut Map<String, Value>) {
    let mut say = |name: &str, value: String| {
        annotations.insert(
            format!("topology.ipvs-topo.io/{name}"),
            Value::String(value),
        );
    };
    say("mode", policy.mode.word().to_owned());
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
        let avoid = policy
            .avoid
            .iter()
            .map(|avoid| format!("{}{}", avoid.key, if avoid.soft { ":soft" } else { "" }));
        say("avoid", avoid.collect::<Vec<_>>().join(","));
    }
    if policy.on_no_match == OnNoMatch::Drop {
        say("on-no-match", "drop".to_owned());
    }
    if policy.slow_start != 0 {
        say("slow-start", policy.slow_start.to_string());
    }
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

fn policy_object(object: &TopologyPolicy) -> Value {
    let mut metadata = Map::from_iter([("name".to_owned(), json!(object.name))]);
    metadata.extend(
        object
            .namespace
            .as_ref()
            .map(|namespace| ("namespace".to_owned(), json!(namespace))),
    );
    metadata.extend(
        object
            .created
            .map(|seconds| ("creationTimestamp".to_owned(), json!(moment(seconds)))),
    );
    let mut spec = Map::from_iter([
        ("priority".to_owned(), json!(object.priority)),
        (
            "serviceSelector".to_owned(),
            selector(&object.service_selector),
        ),
        ("nodeSelector".to_owned(), selector(&object.node_selector)),
        ("portNames".to_owned(), json!(object.port_names)),
    ]);
    if object.namespace.is_none() {
        let word = match object.enforcement {
            Enforcement::Default => "Default",
            Enforcement::Override => "Override",
        };
        spec.insert("enforcement".to_owned(), json!(word));
        spec.insert(
            "namespaceSelector".to_owned(),
            selector(&object.namespace_selector),
        );
    }
    if let Some(limits) = &object.owner_limits {
        let modes: Vec<_> = limits
            .allowed_modes
            .iter()
            .map(|mode| mode_word(*mode))
            .collect();
        let mut owner = Map::from_iter([("allowedModes".to_owned(), json!(modes))]);
        owner.extend(
            limits
                .min_max_overload
                .map(|least| ("minMaxOverloadPercent".to_owned(), json!(least))),
        );
        spec.insert("ownerLimits".to_owned(), Value::Object(owner));
    }
    policy_fields(&object.policy, &mut spec);
    json!({
        "apiVersion": "topology.ipvs-topo.io/v1alpha1",
        "kind": if object.namespace.is_some() { "TopologyPolicy" } else { "ClusterTopologyPolicy" },
        "metadata": metadata,
        "spec": spec,
    })
}

fn mode_word(mode: Mode) -> &'static str {
    match mode {
        Mode::Hard => "Hard",
        Mode::Prefer => "Prefer",
        Mode::Weighted => "Weighted",
        Mode::Balanced => "Balanced",
        Mode::None => "None",
    }
}

fn policy_fields(policy: &Policy, spec: &mut Map<String, Value>) {
    let mut say = |name: &str, value: Value| {
        spec.insert(name.to_owned(), value);
    };
    say("mode", json!(mode_word(policy.mode)));
    if policy.mode == Mode::None {
        return;
    }
    say(
        "levels",
        policy
            .levels
            .iter()
            .map(|level| level_fields(policy, level))
            .collect(),
    );
    if policy.weighting == Weighting::EndpointBias {
        say("weighting", json!("EndpointBias"));
    }
    if policy.empty_tier == EmptyTier::Renormalize {
        say("emptyTier", json!("Renormalize"));
    }
    let mut spill = Map::new();
    if let Some(percent) = policy.overprovision {
        spill.insert("overprovisionPercent".into(), percent.into());
    }
    if policy.recovery_hold > 0 {
        spill.insert("recoveryHoldSeconds".into(), policy.recovery_hold.into());
    }
    if !spill.is_empty() {
        say("spill", spill.into());
    }
    say("guard", guard(policy));
    let avoid = policy.avoid.iter().map(
        |avoid| json!({"key": full(&avoid.key), "mode": if avoid.soft { "Soft" } else { "Hard" }}),
    );
    say("avoid", avoid.collect());
    if policy.on_no_match == OnNoMatch::Drop {
        say("onNoMatch", json!("Drop"));
    }
    if let Some(limit) = policy.subset_max_weight {
        say("subset", json!({"maxWeight": limit}));
    }
    if policy.slow_start != 0 {
        say("slowStartSeconds", json!(policy.slow_start));
    }
}

fn level_fields(policy: &Policy, level: &Level) -> Value {
    let mut fields = match &level.key {
        LevelKey::Any => Map::from_iter([("any".to_owned(), json!(true))]),
        key => Map::from_iter([("key".to_owned(), json!(full(key)))]),
    };
    if policy.mode == Mode::Weighted {
        fields.insert("weight".to_owned(), json!(level.weight));
    }
    if level.min_ready.count != 1 {
        fields.insert("minReadyEndpoints".to_owned(), json!(level.min_ready.count));
    }
    if level.min_ready.percent != 0 {
        fields.insert("minReadyPercent".to_owned(), json!(level.min_ready.percent));
    }
    Value::Object(fields)
}

fn guard(policy: &Policy) -> Value {
    let mut fields = Map::from_iter([
        ("maxOverloadPercent".to_owned(), json!(policy.max_overload)),
        ("minEndpoints".to_owned(), json!(policy.min_endpoints)),
        ("panicPercent".to_owned(), json!(policy.panic_percent)),
    ]);
    let demand = match &policy.demand {
        Demand::NodeCount => "NodeCount",
        Demand::AllocatableCpu => "AllocatableCPU",
        Demand::Static(zones) => {
            let zones = zones
                .iter()
                .map(|(zone, percent)| (zone.to_string(), json!(percent)));
            fields.insert("staticDemand".to_owned(), zones.collect());
            "Static"
        }
    };
    fields.insert("demand".to_owned(), json!(demand));
    if policy.residual == Residual::Even {
        fields.insert("residual".to_owned(), json!("Even"));
    }
    Value::Object(fields)
}

fn selector(selector: &Selector) -> Value {
    let labels: Map<_, _> = selector
        .labels
        .iter()
        .map(|(key, value)| (key.to_string(), json!(value)))
        .collect();
    let expressions = selector.expressions.iter().map(|expression| {
        let operator = match expression.operator {
            Operator::In => "In",
            Operator::NotIn => "NotIn",
            Operator::Exists => "Exists",
            Operator::DoesNotExist => "DoesNotExist",
        };
        json!({"key": expression.key, "operator": operator, "values": expression.values})
    });
    let expressions: Vec<_> = expressions.collect();
    let mut fields = Map::new();
    if !labels.is_empty() {
        fields.insert("matchLabels".to_owned(), Value::Object(labels));
    }
    if !expressions.is_empty() {
        fields.insert("matchExpressions".to_owned(), json!(expressions));
    }
    Value::Object(fields)
}

fn drain(drain: &Drain) -> Value {
    let scope = match drain.scope {
        DrainScope::Endpoints => "Endpoints",
        DrainScope::Clients => "Clients",
        DrainScope::Both => "Both",
    };
    let last = match drain.on_last_domain {
        OnLastDomain::Ignore => "Ignore",
        OnLastDomain::Force => "Force",
    };
    let hard = match drain.hard_services {
        HardServices::Ignore => "Ignore",
        HardServices::Apply => "Apply",
    };
    json!({
        "apiVersion": "topology.ipvs-topo.io/v1alpha1",
        "kind": "TopologyDrain",
        "metadata": {"name": drain.name, "creationTimestamp": moment(drain.starts / 1000)},
        "spec": {
            "match": {"key": full(&drain.key), "values": drain.values},
            "scope": scope,
            "expiresAt": moment(drain.expires / 1000),
            "rampSeconds": drain.ramp_seconds,
            "onLastDomain": last,
            "hardServices": hard,
            "reason": drain.reason,
        },
    })
}

/// A moment of 2023 or of 1970, in seconds since 1970, as RFC 3339 has it.
fn moment(seconds: i64) -> String {
    let (days, rest) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    // The civil calendar from days: eras of 400 years that begin in March.
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 {
        shifted_month + 3
    } else {
        shifted_month - 9
    };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    format!(
        "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}Z",
        rest / 3600,
        rest / 60 % 60,
        rest % 60
    )
}

#[test]
fn moments_are_written_as_people_write_them() {
    assert_eq!(moment(0), "1970-01-01T00:00:00Z");
    assert_eq!(moment(1_700_000_000), "2023-11-14T22:13:20Z");
    assert_eq!(moment(1_709_164_800), "2024-02-29T00:00:00Z");
}
