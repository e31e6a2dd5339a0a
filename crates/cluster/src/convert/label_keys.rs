//! Limits the labels of Nodes that annotations of Services may use, if an administrator lists them.
//!
//! A label that is not in the list is a fault. An entry of `avoid` with the label is not used.
//! Levels of a hard policy with the label count as unreadable, so the fault never opens a boundary.

use std::collections::BTreeSet;
use std::sync::Arc;

use topology_core::model::{Faults, Service};
use topology_core::policy::{self, AnnotationChoice, LevelKey, Mode, PREFIX, Policy, PolicySource};

use super::report::Report;
use crate::intern::Interner;
use crd::REQUIRED_KEYS;
use object_tree::Field;

/// The consequence for the levels of a hard policy.
const KEPT: &str = "the levels are those of a hard policy, so their last good version stays in use; if there is none, connections are refused";

/// The first label of a policy that annotations may not use.
pub fn refused_label<'p>(policy: &'p Policy, allowed: &BTreeSet<Arc<str>>) -> Option<&'p Arc<str>> {
    policy.label_keys().find(|label| !may_use(allowed, label))
}

fn may_use(allowed: &BTreeSet<Arc<str>>, label: &str) -> bool {
    REQUIRED_KEYS.contains(&label) || allowed.contains(label)
}

/// The labels, besides [`REQUIRED_KEYS`], that the annotations of a Service use. Returns `None` if the
/// last valid version stays in use, because the levels of a hard policy cannot be read.
pub fn annotation_labels<'a>(
    annotations: impl IntoIterator<Item = (&'a str, Option<&'a str>)>,
    allowed: Option<&BTreeSet<Arc<str>>>,
) -> Option<BTreeSet<Arc<str>>> {
    let reading = policy::read_annotations(annotations);
    if reading.boundary_unread {
        return None;
    }
    let Some(AnnotationChoice::Policy(asked)) = reading.asked else {
        return Some(BTreeSet::new());
    };
    let used = match allowed {
        None => *asked,
        Some(allowed) => {
            let used = allowed_part(&asked, allowed);
            if used != *asked && is_unread_boundary(&used) {
                return None;
            }
            used
        }
    };
    let labels = used.label_keys().cloned();
    Some(
        labels
            .filter(|label| !REQUIRED_KEYS.contains(&&**label))
            .collect(),
    )
}

/// Removes the parts of an annotation's policy that use a label which is not in `allowed`.
pub(super) fn restrict(
    service: &mut Service,
    root: &Field<'_>,
    allowed: &BTreeSet<Arc<str>>,
    interner: &mut Interner,
    report: &mut Report,
) {
    let Some(policy) = service.policy.clone() else {
        return;
    };
    let mut avoided = policy.avoid.iter().map(|avoid| &avoid.key);
    if let Some(key) = avoided.find(|key| is_refused(allowed, key)) {
        warn(root, &["avoid"], key, "it is not avoided", report);
    }
    if let Some(key) = refused_level(&policy, allowed) {
        let consequence = if policy.is_bounded() {
            KEPT
        } else {
            "the levels are not used, and the next source decides"
        };
        warn(root, &["weights", "keys"], key, consequence, report);
    }
    let left = allowed_part(&policy, allowed);
    if left == *policy {
        return;
    }
    if is_unread_boundary(&left) {
        service.faults = Faults::Boundary;
    } else if service.faults == Faults::None {
        service.faults = Faults::Some;
    }
    let adds_nothing = left.adds && left.avoid.is_empty() && left.scheduler.is_none();
    service.policy = (!adds_nothing).then(|| interner.policy(left));
}

fn is_refused(allowed: &BTreeSet<Arc<str>>, key: &LevelKey) -> bool {
    key.label().is_some_and(|label| !may_use(allowed, label))
}

/// Levels from `topologyKeys` are not limited.
fn refused_level<'p>(policy: &'p Policy, allowed: &BTreeSet<Arc<str>>) -> Option<&'p LevelKey> {
    let mut levels = policy.levels.iter().map(|level| &level.key);
    let level = levels.find(|key| is_refused(allowed, key));
    level.filter(|_| policy.source == PolicySource::Annotation)
}

/// The part of a policy that annotations may use.
fn allowed_part(policy: &Policy, allowed: &BTreeSet<Arc<str>>) -> Policy {
    let mut left = policy.clone();
    left.avoid.retain(|avoid| !is_refused(allowed, &avoid.key));
    match refused_level(policy, allowed) {
        Some(_) => without_levels(left),
        None => left,
    }
}

/// Whether this is the rest of a hard policy whose levels cannot be used.
fn is_unread_boundary(left: &Policy) -> bool {
    left.levels.is_empty() && left.mode == Mode::Hard
}

/// A policy without its levels. A hard policy stays hard and matches no endpoint; another policy
/// keeps only what it adds.
fn without_levels(policy: Policy) -> Policy {
    let is_bounded = policy.is_bounded();
    let mode = if is_bounded { Mode::Hard } else { Mode::None };
    Policy {
        avoid: policy.avoid,
        on_no_match: policy.on_no_match,
        scheduler: policy.scheduler,
        adds: !is_bounded,
        ..Policy::new(policy.source, mode, Vec::new())
    }
}

/// Reports a label at the first annotation that contains it.
fn warn(root: &Field<'_>, names: &[&str], key: &LevelKey, consequence: &str, report: &mut Report) {
    let label = key.label().map_or("", |label| label);
    let metadata = root.get("metadata");
    let annotations = metadata.get("annotations");
    let names: Vec<String> = names.iter().map(|name| format!("{PREFIX}{name}")).collect();
    let mut naming = names.iter().filter(|name| {
        let text = annotations.entry(name).text(report);
        text.is_some_and(|text| text.contains(label))
    });
    let name = naming.next().or(names.first()).map_or("", |name| name);
    report.warn(
        &annotations.entry(name),
        format!("annotations may not use the label {label} here; {consequence}"),
        "use a label of the agents' --annotation-label-keys, or ask an administrator to add this label",
    );
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::Arc;

    use topology_core::model::{Faults, Service};
    use topology_core::policy::PREFIX;

    use super::annotation_labels;
    use crate::AllowLists;
    use crate::source::{Options, read_text};
    use crd::REQUIRED_KEYS;

    /// The Service, and the warnings, where annotations may use `example.com/rack`.
    fn read(annotations: &[(&str, &str)]) -> (Service, Vec<String>) {
        let lines: Vec<String> = annotations
            .iter()
            .map(|(name, value)| format!("    topology.ipvs-topo.io/{name}: '{value}'\n"))
            .collect();
        let text = format!(
            "apiVersion: v1\nkind: Service\nmetadata:\n  name: s\n  namespace: t\n  annotations:\n{}spec: {{clusterIP: 10.96.0.1, ports: [{{port: 80}}]}}\n",
            lines.concat()
        );
        let options = Options {
            allowed: AllowLists {
                annotation_keys: Some(BTreeSet::from(["example.com/rack".into()])),
                ..AllowLists::default()
            },
            ..Options::default()
        };
        let loaded = read_text("a.yaml", text.as_bytes(), &options).unwrap();
        let service = loaded.snapshot.services().next().unwrap().clone();
        let warned = loaded.warnings.iter().map(ToString::to_string);
        let warned = warned.filter(|warned| warned.contains("may not use"));
        (service, warned.collect())
    }

    /// Mode, levels and avoided domains of the remaining policy.
    fn left(annotations: &[(&str, &str)]) -> (String, Faults) {
        let (service, warned) = read(annotations);
        assert_eq!(
            warned.is_empty(),
            service.faults == Faults::None,
            "{warned:?}"
        );
        let words = service.policy.as_ref().map(|policy| {
            let levels = policy.levels.iter().map(|level| level.key.to_string());
            let avoid = policy.avoid.iter().map(|avoid| format!("!{}", avoid.key));
            let words: Vec<String> = levels.chain(avoid).collect();
            format!("{} {}", policy.mode.as_str(), words.join(","))
        });
        (
            words.unwrap_or_else(|| "nothing".to_owned()),
            service.faults,
        )
    }

    #[test]
    fn d13_a_label_that_annotations_may_not_use_never_opens_a_boundary() {
        const OTHER: &str = "example.com/x";
        for (annotations, words, faults) in [
            (
                &[("keys", "example.com/rack,zone")][..],
                "hard example.com/rack,zone",
                Faults::None,
            ),
            (
                &[("keys", "zone"), ("avoid", OTHER)],
                "hard zone",
                Faults::Some,
            ),
            (
                &[
                    ("keys", "zone,*"),
                    ("avoid", "example.com/x,example.com/rack"),
                ],
                "prefer zone,*,!example.com/rack",
                Faults::Some,
            ),
            (&[("avoid", OTHER)], "nothing", Faults::Some),
            (&[("keys", "example.com/x,zone")], "hard ", Faults::Boundary),
            (
                &[("weights", "zone=90,example.com/x=10")],
                "hard ",
                Faults::Boundary,
            ),
            (
                &[("mode", "hard"), ("keys", "example.com/x,*")],
                "hard ",
                Faults::Boundary,
            ),
            (&[("keys", "example.com/x,*")], "nothing", Faults::Some),
            (
                &[("weights", "example.com/x=90,*=10"), ("avoid", "node:soft")],
                "none !node",
                Faults::Some,
            ),
        ] {
            assert_eq!(
                left(annotations),
                (words.to_owned(), faults),
                "{annotations:?}"
            );
        }
    }

    /// The labels of the converted Service, or `None` if its last valid version stays in use.
    fn labels_of_service(annotations: &[(&str, &str)]) -> Option<BTreeSet<Arc<str>>> {
        let (service, _) = read(annotations);
        let labels = service.policy.iter().flat_map(|policy| policy.label_keys());
        let labels = labels.filter(|label| !REQUIRED_KEYS.contains(&&***label));
        (service.faults != Faults::Boundary).then(|| labels.cloned().collect())
    }

    #[test]
    fn the_labels_of_annotations_are_those_of_the_converted_service() {
        let allowed = BTreeSet::from(["example.com/rack".into()]);
        for annotations in [
            &[][..],
            &[("keys", "zone,region")],
            &[("keys", "example.com/rack,zone")],
            &[("weights", "example.com/rack=90,*=10")],
            &[("avoid", "example.com/rack")],
            &[
                ("avoid", "example.com/rack,example.com/x"),
                ("keys", "zone,*"),
            ],
            &[("keys", "example.com/rack,example.com/x,*")],
            &[("keys", "example.com/rack,example.com/x")],
            &[("keys", "not a label")],
            &[("keys", "example.com/rack,*"), ("slow-start", "never")],
            &[("policy", "near")],
            &[("policy", "not a name!")],
        ] {
            let full: Vec<(String, &str)> = annotations
                .iter()
                .map(|(name, text)| (format!("{PREFIX}{name}"), *text))
                .collect();
            let texts = || full.iter().map(|(key, text)| (&**key, Some(*text)));
            let limited = annotation_labels(texts(), Some(&allowed));
            assert_eq!(limited, labels_of_service(annotations), "{annotations:?}");
            let labels = annotation_labels(texts(), None);
            let missing = limited.is_some() && labels.is_none();
            assert!(!missing, "{annotations:?}");
        }
        let any = annotation_labels(
            [("topology.ipvs-topo.io/keys", Some("example.com/x,zone,*"))],
            None,
        );
        assert_eq!(any, Some(BTreeSet::from(["example.com/x".into()])));
        let other = annotation_labels([("example.com/keys", Some("example.com/x,*"))], None);
        assert_eq!(other, Some(BTreeSet::new()));
    }

    #[test]
    fn the_annotation_that_names_the_label_is_reported() {
        let (_, warned) = read(&[("keys", "zone,example.com/x"), ("avoid", "example.com/y")]);
        assert_eq!(warned.len(), 2, "{warned:#?}");
        let both = warned.concat();
        for part in [
            "topology.ipvs-topo.io/keys",
            "label example.com/x",
            "io/avoid",
            "label example.com/y",
        ] {
            assert!(both.contains(part), "{part}: {warned:#?}");
        }
    }
}
