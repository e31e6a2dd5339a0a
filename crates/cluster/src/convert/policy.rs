//! What a Service asks of topology: our annotations, or the old `spec.topologyKeys`.
//!
//! A fault costs the annotation that has it. Where the levels of a hard policy, or the name of the policy, cannot be read, the Service asks for a
//! boundary that holds nothing; the index puts the last good version in its place, if there is one.

use std::collections::HashMap;

use topology_core::model::{Faults, TrafficPolicy};
use topology_core::policy::{
    self, AnnotationChoice, AnnotationReading, PREFIX, Policy, PolicyError, TopologyKeysReading,
};

use super::report::Report;
use crate::object::Ignored;
use object_tree::Field;
use object_tree::Node;

/// What is done about a fault in an annotation.
const NOT_USED: &str = "it is not used";
/// What is done about levels of a hard policy that cannot be read.
const KEPT: &str = "the levels of a hard policy cannot be read, so the last good version stays in use, or connections are refused if there is none";
/// What is done about the name of a policy that cannot be read.
const NAME_KEPT: &str = "the policy may be a hard one, so the last good version stays in use, or connections are refused if there is none";

/// What a Service asks for, and what is wrong with it.
pub(crate) struct Asking {
    /// By its annotations and its `topologyKeys` together.
    pub(crate) asked: Option<AnnotationChoice>,
    /// By its `topologyKeys` alone.
    pub(crate) topology_keys: Option<Policy>,
    /// What is wrong with them.
    pub(crate) faults: Faults,
}

/// Reads what a Service asks for. Annotations with levels, or a named policy, win over `topologyKeys`; annotations without
/// add to them.
pub(crate) fn of_service(
    root: &Field<'_>,
    spec: &Field<'_>,
    external: TrafficPolicy,
    report: &mut Report,
) -> Asking {
    let keys = spec.get("topologyKeys");
    let (annotated, faults) = annotated(root, report);
    let has_levels = match &annotated {
        Some(AnnotationChoice::Policy(policy)) => !policy.adds,
        Some(AnnotationChoice::Named(_)) => true,
        None => false,
    };
    if has_levels && keys.is_present() {
        let message = "not used, because annotations say what is wanted";
        report.warn(&keys, message, "remove one of the two");
    }
    let reading = read_keys(&keys, report);
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

/// Reports annotations of ours on a Service that no node proxy serves, because of what it is.
pub(crate) fn warn_not_served(root: &Field<'_>, why: Ignored, report: &mut Report) {
    let metadata = root.get("metadata");
    let annotations = metadata.get("annotations");
    let mut ours = annotations.keys().filter(|key| key.starts_with(PREFIX));
    if let Some(key) = ours.next() {
        let message = format!(
            "no effect: the Service is {why}, so clients reach its endpoints without a virtual server"
        );
        let remedy = "remove the annotation, or give the Service a cluster IP";
        report.warn_no_effect(&annotations.entry(key), message, remedy);
    }
}

fn annotated(root: &Field<'_>, report: &mut Report) -> (Option<AnnotationChoice>, Faults) {
    let metadata = root.get("metadata");
    let annotations = metadata.get("annotations");
    let texts = annotations.texts(report);
    // There may be thousands, so none is looked for among all.
    let texts: HashMap<&str, &str> = texts.into_iter().collect();
    let ours = annotations.keys().filter(|key| key.starts_with(PREFIX));
    let ours: Vec<_> = ours.map(|key| (key, texts.get(key).copied())).collect();
    let is_not_text = ours.iter().any(|(_, text)| text.is_none());
    let AnnotationReading {
        asked,
        errors,
        boundary_unread,
        name_unread,
    } = policy::read_annotations(ours);
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

/// Whether a fault is one of levels and mode.
fn is_about_levels(error: &PolicyError) -> bool {
    let name = error.field.strip_prefix(PREFIX);
    name.is_some_and(|name| ["mode", "keys", "weights"].contains(&name))
}

/// The field of Kubernetes 1.17 to 1.21, with the rules of its validation (1.18).
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

/// Reports what is wrong with keys that are used.
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
        let message = "Kubernetes forbade topologyKeys with externalTrafficPolicy Local; they hold for inside traffic";
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

/// The element of the list that a finding such as `spec.topologyKeys[2]` is about, or the list.
fn element<'s>(keys: &'s Field<'s>, path: &str) -> Field<'s> {
    let index = path
        .rsplit_once('[')
        .and_then(|(_, rest)| rest.strip_suffix(']')?.parse().ok());
    keys.element(index)
}

/// Reports an error in a policy. Its text ends in what would be right, after the last `; `.
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
    fn d13_thousands_of_annotations_of_ours_cost_no_more_than_they_are() {
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
