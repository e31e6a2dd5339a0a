//! Reads the topology policy of a Service: its annotations, or the old `spec.topologyKeys`.
//!
//! An annotation with a fault is not used. If the levels of a hard policy, or the name of the
//! policy, cannot be read, the Service gets a hard policy that matches no endpoint. The index
//! replaces it with the last good version, if there is one.

use std::collections::HashMap;

use topology_core::model::{Faults, TrafficPolicy};
use topology_core::policy::{
    self, AnnotationChoice, AnnotationReading, PREFIX, Policy, PolicyError, TopologyKeysReading,
};

use super::report::Report;
use crate::object::Ignored;
use object_tree::Field;
use object_tree::Node;

/// The consequence of a fault in an annotation.
const NOT_USED: &str = "it is not used";
/// The consequence if the levels of a hard policy cannot be read.
const KEPT: &str = "the levels of a hard policy cannot be read, so the last good version stays in use, or connections are refused if there is none";
/// The consequence if the name of a policy cannot be read.
const NAME_KEPT: &str = "the policy may be hard, so the last good version stays in use, or connections are refused if there is none";

/// The policy that a Service asks for, and its faults.
pub(crate) struct Asking {
    /// From the annotations and `topologyKeys` together.
    pub(crate) asked: Option<AnnotationChoice>,
    /// From `topologyKeys` alone.
    pub(crate) topology_keys: Option<Policy>,
    pub(crate) faults: Faults,
}

/// Annotations with levels, or with the name of a policy, replace `topologyKeys`. Other annotations
/// add to them.
pub(crate) fn of_service(
    root: &Field<'_>,
    spec: &Field<'_>,
    external: TrafficPolicy,
    report: &mut Report,
) -> Asking {
    let keys = spec.get("topologyKeys");
    let reading = read_keys(&keys, report);
    let (annotated, faults) = annotated(root, reading.policy.as_ref(), report);
    let has_levels = match &annotated {
        Some(AnnotationChoice::Policy(policy)) => !policy.adds,
        Some(AnnotationChoice::Named(_)) => true,
        None => false,
    };
    if has_levels && keys.is_present() {
        let message = "not used, because the annotations define the policy";
        report.warn(&keys, message, "remove one of the two");
    }
    let faults_of_keys = if has_levels {
        Faults::None
    } else {
        report_keys(&keys, &reading, external, report)
    };
    Asking {
        asked: policy::beside_topology_keys(annotated, reading.policy.clone()),
        topology_keys: reading.policy,
        faults: match faults_of_keys {
            Faults::None => faults,
            of_keys @ (Faults::Some | Faults::Boundary | Faults::LastGood | Faults::Pending) => {
                of_keys
            }
        },
    }
}

/// Warns about topology annotations on a Service that no node proxy serves.
pub(crate) fn warn_not_served(root: &Field<'_>, why: Ignored, report: &mut Report) {
    let metadata = root.get("metadata");
    let annotations = metadata.get("annotations");
    let mut ours = annotations.keys().filter(|key| key.starts_with(PREFIX));
    if let Some(key) = ours.next() {
        let message = format!(
            "no effect: the Service is {why}, so clients reach its endpoints without a virtual server"
        );
        let remedy = if why == Ignored::Headless {
            "answer its clients by `ipvs-topo dns`, which applies it, give the Service a cluster IP, or remove the annotation"
        } else {
            "remove the annotation, or give the Service a cluster IP"
        };
        report.warn_no_effect(&annotations.entry(key), message, remedy);
    }
}

fn annotated(
    root: &Field<'_>,
    keys: Option<&Policy>,
    report: &mut Report,
) -> (Option<AnnotationChoice>, Faults) {
    let metadata = root.get("metadata");
    let annotations = metadata.get("annotations");
    let texts = annotations.texts(report);
    // A Service may have thousands of annotations: a map avoids a search for each.
    let texts: HashMap<&str, &str> = texts.into_iter().collect();
    let ours = annotations.keys().filter(|key| key.starts_with(PREFIX));
    let ours: Vec<_> = ours.map(|key| (key, texts.get(key).copied())).collect();
    let is_not_text = ours.iter().any(|(_, text)| text.is_none());
    let AnnotationReading {
        asked,
        errors,
        boundary_unread,
        name_unread,
    } = AnnotationReading::beside(ours, keys);
    let fields = annotations.by_key();
    for error in &errors {
        let consequence = if name_unread && error.field.strip_prefix(PREFIX) == Some("policy") {
            NAME_KEPT
        } else if boundary_unread && !name_unread && is_about_levels(error) {
            KEPT
        } else {
            NOT_USED
        };
        match fields.get(&*error.field) {
            Some(field) => warn(field, error, consequence, report),
            None => warn(&annotations.entry(&error.field), error, consequence, report),
        }
    }
    let faults = match (boundary_unread, errors.is_empty() && !is_not_text) {
        (true, _) => Faults::Boundary,
        (false, false) => Faults::Some,
        (false, true) => Faults::None,
    };
    (asked, faults)
}

/// Whether a fault is in the levels or the mode.
fn is_about_levels(error: &PolicyError) -> bool {
    let name = error.field.strip_prefix(PREFIX);
    name.is_some_and(|name| ["mode", "keys", "weights"].contains(&name))
}

/// Reads the field of Kubernetes 1.17 to 1.21, with the rules of the validation in 1.18.
fn read_keys(keys: &Field<'_>, report: &mut Report) -> TopologyKeysReading {
    let texts: Vec<&str> = keys
        .items(report)
        .map(|entry| entry.text(report).unwrap_or_default())
        .collect();
    let is_list = keys
        .node()
        .is_none_or(|node| node.is_null() || node.list().is_some());
    if is_list {
        policy::read_topology_keys(&texts)
    } else {
        TopologyKeysReading::unread()
    }
}

/// Reports the faults of keys that are used.
fn report_keys(
    keys: &Field<'_>,
    reading: &TopologyKeysReading,
    external: TrafficPolicy,
    report: &mut Report,
) -> Faults {
    let is_there = keys
        .node()
        .and_then(Node::list)
        .is_some_and(|list| !list.is_empty());
    if is_there && external == TrafficPolicy::Local {
        let message = "Kubernetes did not allow topologyKeys with externalTrafficPolicy Local; they apply to traffic from inside the cluster";
        report.warn(keys, message, "remove one of the two");
    }
    for warning in &reading.warnings {
        report.warn(&element(keys, &warning.field), warning.message.as_str(), "");
    }
    for error in &reading.errors {
        let consequence = if reading.boundary_unread {
            KEPT
        } else if reading.policy.is_some() {
            NOT_USED
        } else {
            "all topologyKeys are ignored"
        };
        warn(&element(keys, &error.field), error, consequence, report);
    }
    match (reading.boundary_unread, reading.errors.is_empty()) {
        (true, _) => Faults::Boundary,
        (false, false) => Faults::Some,
        (false, true) => Faults::None,
    }
}

/// The element that a path such as `spec.topologyKeys[2]` names, or the whole list.
fn element<'s>(keys: &'s Field<'s>, path: &str) -> Field<'s> {
    let index = path
        .rsplit_once('[')
        .and_then(|(_, rest)| rest.strip_suffix(']')?.parse().ok());
    keys.element(index)
}

/// Reports an error in a policy. In its text, the remedy follows the last `; `.
fn warn(field: &Field<'_>, error: &PolicyError, consequence: &str, report: &mut Report) {
    let (problem, remedy) = error
        .problem
        .rsplit_once("; ")
        .unwrap_or((&error.problem, ""));
    report.warn(field, format!("{problem}; {consequence}"), remedy);
}

#[cfg(test)]
mod tests {
    use crate::source::{Options, read_text};

    #[test]
    fn d13_thousands_of_topology_annotations_take_linear_time() {
        let lines: Vec<String> = (0..50_000)
            .map(|number| format!("    topology.ipvs-topo.io/x{number}: 'y'\n"))
            .collect();
        for named in ["", "    topology.ipvs-topo.io/policy: near\n"] {
            let text = format!(
                "apiVersion: v1\nkind: Service\nmetadata:\n  name: s\n  namespace: t\n  annotations:\n{named}{}spec: {{clusterIP: 10.96.0.1, ports: [{{port: 80}}]}}\n",
                lines.concat()
            );
            let began = std::time::Instant::now();
            let loaded = read_text("a.yaml", text.as_bytes(), &Options::default()).unwrap();
            assert!(loaded.warnings.len() > 20);
            assert!(began.elapsed().as_secs() < 60, "{:?}", began.elapsed());
        }
    }
}
