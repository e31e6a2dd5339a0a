//! Writes policies and drains as objects.

use serde_json::{Map, Value, json};
use topology_core::model::{
    Drain, DrainScope, Enforcement, HardServices, OnLastDomain, Operator, Selector, TopologyPolicy,
};
use topology_core::policy::{
    Demand, EmptyTier, Level, LevelKey, Mode, OnNoMatch, Policy, Residual, Weighting,
};

use super::full;
use super::moment::moment;

pub(super) fn object(object: &TopologyPolicy) -> Value {
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
            .map(|mode| mode.api_value())
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

fn policy_fields(policy: &Policy, spec: &mut Map<String, Value>) {
    let mut say = |name: &str, value: Value| {
        spec.insert(name.to_owned(), value);
    };
    say("mode", json!(policy.mode.api_value()));
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

pub(super) fn drain(drain: &Drain) -> Value {
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
