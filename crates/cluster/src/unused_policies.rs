//! Warns about valid policies and drains without effect: they select nothing in the input, or they
//! have ended.

// A new variant must be handled in each `match`, and not fall under `_`.
#![warn(clippy::wildcard_enum_match_arm)]

use std::sync::Arc;

use topology_core::model::{Drain, Labels, Service, TopologyPolicy};
use topology_core::policy::{LevelKey, PolicySource, ZONE, suggest};
use topology_core::snapshot::Snapshot;

use crate::object::{Kind, ObjectKey};
use crate::warning::{Code, Warning};

/// The field, the problem and the remedy.
type Cause = (&'static str, &'static str, &'static str);

/// How many labels of the Nodes are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodeLabels {
    /// All labels of every Node.
    All,
    /// Perhaps only some labels of other Nodes, so node selectors are not checked.
    Some,
}

pub type FileLine = (Arc<str>, u32);

/// Returns one warning for each such object. `place` returns the file and line of an object, if
/// known.
///
/// If the input has no Services, or no Nodes, the selectors for them are not checked. Without `now`
/// (milliseconds since 1970) no drain has ended.
pub fn warnings(
    snapshot: &Snapshot,
    now: Option<i64>,
    known: NodeLabels,
    place: impl Fn(&ObjectKey) -> Option<FileLine>,
) -> Vec<Warning> {
    let policies = snapshot.policies().filter_map(|policy| {
        let cause = idle_policy(policy, snapshot, known)?;
        Some((ObjectKey::of_policy(policy), Code::PolicyIdle, cause))
    });
    let drains = snapshot.drains().filter_map(|drain| {
        let ended = ended(drain, now).map(|cause| (Code::DrainEnded, cause));
        let (code, cause) =
            ended.or_else(|| Some((Code::DrainIdle, idle_drain(drain, snapshot)?)))?;
        let key = ObjectKey::global(Kind::TopologyDrain, &drain.name);
        Some((key, code, cause))
    });
    let warning = |(key, code, (field, message, remedy)): (ObjectKey, Code, Cause)| {
        let (file, line) = place(&key).unwrap_or_default();
        Warning {
            field: field.into(),
            code,
            ..Warning::of_object(&file, line, &key, message, remedy)
        }
    };
    let idle = policies.chain(drains).map(warning);
    idle.chain(unknown_levels(snapshot, &place)).collect()
}

/// Returns one warning for each policy, and each Service with its own policy, that uses a label
/// which no Node has.
fn unknown_levels(
    snapshot: &Snapshot,
    place: &impl Fn(&ObjectKey) -> Option<FileLine>,
) -> Vec<Warning> {
    let objects = snapshot.policies().map(|object| {
        let hard = object.namespace.is_none() && object.policy.is_bounded();
        (
            ObjectKey::of_policy(object),
            &object.policy,
            "spec.levels",
            hard,
        )
    });
    let services = snapshot.services().filter_map(|service| {
        let policy = service.policy.as_deref()?;
        let field = if policy.source == PolicySource::TopologyKeys {
            "spec.topologyKeys"
        } else {
            "metadata.annotations"
        };
        let key = ObjectKey::namespaced(Kind::Service, &service.name);
        Some((key, policy, field, false))
    });
    let users = objects.chain(services);
    let warnings = users.filter_map(|(key, policy, field, hard)| {
        let mut labels = policy.label_keys();
        let unknown = labels.find(|label| !snapshot.has_label(label))?;
        let (file, line) = place(&key).unwrap_or_default();
        let consequence = if hard {
            "; a hard policy is not applied until a Node has a label of its levels"
        } else {
            ""
        };
        let message = format!("no Node in the input has the label {unknown}{consequence}");
        let meant = suggest(unknown, snapshot.node_labels());
        let remedy = meant.map_or_else(
            || "correct the key, or label the Nodes".to_owned(),
            |meant| format!("did you mean {}?", policy.source.level_name(&meant)),
        );
        Some(Warning {
            field: field.into(),
            code: Code::LevelUnknown,
            ..Warning::of_object(&file, line, &key, message, remedy)
        })
    });
    warnings.collect()
}

fn ended(drain: &Drain, now: Option<i64>) -> Option<Cause> {
    now.is_some_and(|now| drain.expires <= now).then_some((
        "spec.expiresAt",
        "the drain has ended and has no effect",
        "remove the drain, or write a later time",
    ))
}

fn idle_policy(policy: &TopologyPolicy, snapshot: &Snapshot, known: NodeLabels) -> Option<Cause> {
    let nodes = || snapshot.nodes();
    let on_node = nodes().any(|node| policy.node_selector.matches(&node.labels));
    if !on_node && nodes().next().is_some() && known == NodeLabels::All {
        let message = "no Node in the input has these labels, so the policy has no effect";
        return Some(("spec.nodeSelector", message, "correct the selector"));
    }
    let mut services = snapshot.services().peekable();
    services.peek()?;
    let (mut in_namespace, mut by_labels) = (false, false);
    for service in services {
        if !reaches(policy, service, snapshot) {
            continue;
        }
        in_namespace = true;
        if is_named(policy, service) || policy.service_selector.matches(&service.labels) {
            by_labels = true;
            let mut ports = service.ports.iter();
            if policy.port_names.is_empty()
                || ports.any(|port| policy.port_names.contains(&port.name))
            {
                return None;
            }
        }
    }
    Some(match (in_namespace, by_labels) {
        (false, _) if policy.namespace.is_some() => (
            "metadata.namespace",
            "no Service in the input is in this namespace, so the policy has no effect",
            "correct the namespace",
        ),
        (false, _) => (
            "spec.namespaceSelector",
            "no Service in the input is in a matching namespace, so the policy has no effect",
            "correct the selector, or add the Namespace objects with their labels",
        ),
        (true, false) => (
            "spec.serviceSelector",
            "no Service in the input has these labels, so the policy has no effect",
            "correct the selector",
        ),
        (true, true) => (
            "spec.portNames",
            "no Service that the policy selects has a port with these names, so the policy has no effect",
            "correct the names",
        ),
    })
}

/// Whether the policy applies to the namespace of the Service.
fn reaches(policy: &TopologyPolicy, service: &Service, snapshot: &Snapshot) -> bool {
    let namespace = &service.name.namespace;
    let nothing = Labels::default();
    let labels = snapshot.namespace(namespace).unwrap_or(&nothing);
    match &policy.namespace {
        Some(own) => own == namespace,
        None => policy.namespace_selector.matches(labels),
    }
}

/// Whether the Service names the policy, so that no selector is needed.
fn is_named(policy: &TopologyPolicy, service: &Service) -> bool {
    policy.namespace.is_some() && service.named_policy.as_ref() == Some(&policy.name)
}

fn idle_drain(drain: &Drain, snapshot: &Snapshot) -> Option<Cause> {
    let mut nodes = snapshot.nodes().peekable();
    nodes.peek()?;
    let in_node = nodes.any(|node| match &drain.key {
        LevelKey::Node => drain.values.contains(&node.name),
        LevelKey::Label(key) => {
            let value = node.labels.get(key);
            value.is_some_and(|value| drain.values.contains(value))
        }
        LevelKey::Any => true,
    });
    let mut slices = snapshot
        .services()
        .flat_map(|service| snapshot.slices(&service.name));
    let in_zone = drain.key.label().is_some_and(|label| **label == *ZONE)
        && slices.any(|slice| {
            let mut zones = slice.endpoints.iter().filter_map(|one| one.zone.as_ref());
            zones.any(|zone| drain.values.contains(zone))
        });
    let message = "no Node in the input is in these domains, so nothing is drained";
    (!in_node && !in_zone).then_some((
        "spec.match.values",
        message,
        "correct the key or the values",
    ))
}

#[cfg(test)]
mod tests {
    use crate::source::{Options, read_text};
    use crate::warning::Warning;

    const CLUSTER: &str = "
apiVersion: v1
kind: Node
metadata: {name: n1, labels: {topology.kubernetes.io/zone: a}}
---
apiVersion: v1
kind: Namespace
metadata: {name: shop, labels: {tier: backend}}
---
apiVersion: v1
kind: Service
metadata: {name: cart, namespace: shop, labels: {app: cart}, annotations: {topology.ipvs-topo.io/policy: named}}
spec: {clusterIP: 10.96.0.1, ports: [{name: http, port: 80}]}
---
apiVersion: topology.ipvs-topo.io/v1alpha1
";

    fn warnings_at(now: Option<i64>, object: &str) -> Vec<Warning> {
        let text = format!("{CLUSTER}{object}");
        let options = Options {
            now,
            ..Options::default()
        };
        read_text("a.yaml", text.as_bytes(), &options)
            .unwrap()
            .warnings
    }

    fn reported(object: &str) -> Vec<String> {
        let warnings = warnings_at(None, object);
        warnings.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_selector_that_matches_nothing_is_reported_with_its_place() {
        let cases = [
            (
                "kind: ClusterTopologyPolicy\nmetadata: {name: p}\nspec: {mode: None, namespaceSelector: {matchLabels: {tier: web}}}",
                "spec.namespaceSelector",
            ),
            (
                "kind: ClusterTopologyPolicy\nmetadata: {name: p}\nspec: {mode: None, serviceSelector: {matchLabels: {app: web}}}",
                "spec.serviceSelector",
            ),
            (
                "kind: ClusterTopologyPolicy\nmetadata: {name: p}\nspec: {mode: None, nodeSelector: {matchLabels: {pool: edge}}}",
                "spec.nodeSelector",
            ),
            (
                "kind: ClusterTopologyPolicy\nmetadata: {name: p}\nspec: {mode: None, portNames: [grpc]}",
                "spec.portNames",
            ),
            (
                "kind: TopologyPolicy\nmetadata: {name: p, namespace: tools}\nspec: {mode: None}",
                "metadata.namespace",
            ),
            (
                "kind: TopologyDrain\nmetadata: {name: p}\nspec: {match: {key: zone, values: [b]}, expiresAt: 2025-11-22T10:00:00Z}",
                "spec.match.values",
            ),
            (
                "kind: TopologyDrain\nmetadata: {name: p}\nspec: {match: {key: node, values: [n2]}, expiresAt: 2025-11-22T10:00:00Z}",
                "spec.match.values",
            ),
        ];
        for (object, field) in cases {
            let reported = reported(object);
            assert_eq!(reported.len(), 1, "{object}: {reported:?}");
            assert!(reported[0].starts_with("a.yaml:15: "), "{reported:?}");
            assert!(
                reported[0].contains(&format!(": {field}: no ")),
                "{reported:?}"
            );
        }
    }

    #[test]
    fn each_kind_of_idle_object_has_its_own_code() {
        let drain = |zone: &str| {
            format!(
                "kind: TopologyDrain\nmetadata: {{name: p}}\nspec: {{match: {{key: zone, values: [{zone}]}}, expiresAt: 2025-11-22T10:00:00Z}}"
            )
        };
        let policy = "kind: ClusterTopologyPolicy\nmetadata: {name: p}\nspec: {mode: None, portNames: [grpc]}";
        let end = 1_763_805_600_000;
        let cases = [
            (Some(end - 1), drain("a"), None),
            (Some(end), drain("a"), Some("DrainEnded")),
            (Some(end), drain("b"), Some("DrainEnded")),
            (Some(end - 1), drain("b"), Some("DrainIdle")),
            (None, policy.to_owned(), Some("PolicyIdle")),
        ];
        for (now, object, code) in cases {
            let reported = warnings_at(now, &object);
            let codes = reported.iter().map(|warning| warning.code.as_str());
            assert_eq!(codes.collect::<Vec<_>>(), Vec::from_iter(code), "{object}");
        }
    }

    #[test]
    fn an_object_that_selects_something_is_not_reported() {
        for object in [
            "kind: ClusterTopologyPolicy\nmetadata: {name: p}\nspec: {mode: None, namespaceSelector: {matchLabels: {tier: backend}}, serviceSelector: {matchLabels: {app: cart}}, portNames: [http]}",
            "kind: TopologyPolicy\nmetadata: {name: named, namespace: shop}\nspec: {mode: None, serviceSelector: {matchLabels: {only: by-name}}}",
            "kind: TopologyDrain\nmetadata: {name: p}\nspec: {match: {key: zone, values: [a]}, expiresAt: 2025-11-22T10:00:00Z}",
            "kind: TopologyDrain\nmetadata: {name: p}\nspec: {match: {key: node, values: [n1]}, expiresAt: 2025-11-22T10:00:00Z}",
        ] {
            assert_eq!(reported(object), Vec::<String>::new(), "{object}");
        }
    }

    #[test]
    fn a_file_of_policies_alone_gives_no_warning() {
        let text = "apiVersion: topology.ipvs-topo.io/v1alpha1\nkind: TopologyPolicy\nmetadata: {name: p}\nspec: {mode: None}\n";
        let loaded = read_text("a.yaml", text.as_bytes(), &Options::default()).unwrap();
        assert_eq!(loaded.warnings, []);
    }

    #[test]
    fn a_level_that_no_node_has_is_reported_with_a_suggestion() {
        let policy = |key: &str| {
            "kind: ClusterTopologyPolicy\nmetadata: {name: p}\nspec: {mode: Hard, levels: [{key: KEY}]}"
                .replace("KEY", key)
        };
        for (key, meant) in [
            ("az", "; did you mean zone?"),
            (
                "failure-domain.beta.kubernetes.io/zone",
                "; did you mean zone?",
            ),
            ("example.com/typo", "; correct the key, or label the Nodes"),
        ] {
            let reported = reported(&policy(key));
            assert_eq!(reported.len(), 1, "{reported:?}");
            assert!(reported[0].contains("spec.levels: no Node in the input has the label"));
            assert!(reported[0].ends_with(meant), "{reported:?}");
        }
        assert_eq!(reported(&policy("zone")), [""; 0]);
        let keys = "kind: Service\napiVersion: v1\nmetadata: {name: s, namespace: shop}\nspec: {clusterIP: 10.96.0.2, ports: [{port: 80}], topologyKeys: [zone]}";
        let reported = read_text(
            "a.yaml",
            format!("{CLUSTER}{}", keys.replace("apiVersion: v1\n", ""))
                .replace(
                    "topology.ipvs-topo.io/v1alpha1\nkind: Service",
                    "v1\nkind: Service",
                )
                .as_bytes(),
            &Options::default(),
        );
        let reported = reported.unwrap().warnings;
        assert!(
            reported[0]
                .to_string()
                .ends_with("did you mean topology.kubernetes.io/zone?"),
            "{reported:?}"
        );
        assert_eq!(reported[0].code.as_str(), "LevelUnknown");
    }
}
