//! What a Service asks of topology: our annotations, or the old `spec.topologyKeys`.

use topology_core::model::TrafficPolicy;
use topology_core::policy::{self, Asked, PREFIX, Policy, PolicyError};

use super::field::Field;
use super::report::Report;

/// What a Service asks, and whether its annotations are not valid. Annotations win over `topologyKeys`;
/// a source that is not valid is ignored as a whole, with a warning, and the next one or none is used.
pub(crate) fn of_service(
    root: &Field<'_>,
    spec: &Field<'_>,
    external: TrafficPolicy,
    report: &mut Report,
) -> (Option<Asked>, bool) {
    let keys = spec.get("topologyKeys");
    let annotated = annotated(root, report);
    let annotations_invalid = annotated.is_err();
    let asked = match annotated.ok().flatten() {
        Some(asked) if keys.is_present() => {
            let message = "not used, because annotations say what is wanted";
            report.warn(&keys, message, "remove one of the two");
            Some(asked)
        }
        Some(asked) => Some(asked),
        None => from_keys(&keys, external, report).map(|policy| Asked::Policy(Box::new(policy))),
    };
    (asked, annotations_invalid)
}

/// Annotations of which one is not valid; the report tells which.
struct Invalid;

fn annotated(root: &Field<'_>, report: &mut Report) -> Result<Option<Asked>, Invalid> {
    let metadata = root.get("metadata");
    let annotations = metadata.get("annotations");
    let texts = annotations.texts(report);
    // One of ours that is not even text spoils the set like any other fault in it.
    if annotations
        .keys()
        .any(|key| key.starts_with(PREFIX) && !texts.iter().any(|(known, _)| *known == key))
    {
        return Err(Invalid);
    }
    policy::from_annotations(texts).map_err(|errors| {
        for error in errors {
            let field = annotations.entry(&error.field);
            warn(
                &field,
                &error,
                "all topology annotations of the Service are ignored",
                report,
            );
        }
        Invalid
    })
}

/// The field of Kubernetes 1.17 to 1.21, with the rules of its validation (1.18).
fn from_keys(keys: &Field<'_>, external: TrafficPolicy, report: &mut Report) -> Option<Policy> {
    let texts: Vec<&str> = keys
        .items(report)
        .map(|entry| entry.text(report).unwrap_or_default())
        .collect();
    if !texts.is_empty() && external == TrafficPolicy::Local {
        let message = "not used: Kubernetes forbade topologyKeys with externalTrafficPolicy Local";
        report.warn(keys, message, "remove one of the two");
        return None;
    }
    match policy::from_topology_keys(&texts) {
        Ok((policy, warnings)) => {
            for warning in warnings {
                report.warn(&element(keys, &warning.field), warning.message, "");
            }
            policy
        }
        Err(errors) => {
            for error in errors {
                warn(
                    &element(keys, &error.field),
                    &error,
                    "all topologyKeys are ignored",
                    report,
                );
            }
            None
        }
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
