//! The labels of Nodes that annotations of Services may use, where an administrator names them.
//!
//! A label that may not be used is a fault like any other: it costs the entry of `avoid` that has it, and where it stands
//! in the levels of a boundary, the boundary cannot be read. It never opens one.

use std::collections::BTreeSet;
use std::sync::Arc;

use topology_core::model::{Faults, Service};
use topology_core::policy::{LevelKey, Mode, PREFIX, Policy, PolicySource};

use super::report::Report;
use crate::intern::Interner;
use crd::REQUIRED_KEYS;
use object_tree::Field;

/// What is done about levels of a boundary with such a label.
const KEPT: &str = "the levels are those of a hard policy, so the last good version stays in use, or connections are refused if there is none";

/// The first label of a policy that annotations may not use, if they may use only some.
pub fn refused_label<'p>(policy: &'p Policy, allowed: &BTreeSet<Arc<str>>) -> Option<&'p Arc<str>> {
    policy.label_keys().find(|label| !may_use(allowed, label))
}

fn may_use(allowed: &BTreeSet<Arc<str>>, label: &str) -> bool {
    REQUIRED_KEYS.contains(&label) || allowed.contains(label)
}

/// Takes out of the policy of annotations what uses a label that is not among `allowed`.
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
    let is_refused = |key: &LevelKey| {
        let label = key.label();
        label.is_some_and(|label| !may_use(allowed, label))
    };
    let mut left = (*policy).clone();
    left.avoid.retain(|avoid| !is_refused(&avoid.key));
    let mut avoided = policy.avoid.iter().map(|avoid| &avoid.key);
    if let Some(key) = avoided.find(|key| is_refused(key)) {
        warn(root, &["avoid"], key, "it is not avoided", report);
    }
    let mut levels = policy.levels.iter().map(|level| &level.key);
    let level = levels.find(|key| is_refused(key));
    // What `topologyKeys` name is not named by an annotation.
    let level = level.filter(|_| policy.source == PolicySource::Annotation);
    if let Some(key) = level {
        let consequence = if policy.is_bounded() {
            KEPT
        } else {
            "the levels are not used, and the next source decides"
        };
        warn(root, &["weights", "keys"], key, consequence, report);
        left = without_levels(left);
    }
    if left == *policy {
        return;
    }
    if left.levels.is_empty() && left.mode == Mode::Hard {
        service.faults = Faults::Boundary;
    } else if service.faults == Faults::None {
        service.faults = Faults::Some;
    }
    let adds_nothing = left.adds && left.avoid.is_empty() && left.scheduler.is_none();
    service.policy = (!adds_nothing).then(|| interner.policy(left));
}

/// What is left of a policy whose levels cannot be used: of a boundary one that holds nothing, else what it adds.
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

/// Reports a label at the first of the annotations that names it.
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
        "use a label that --annotation-label-keys of the agents names, or have it named there",
    );
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use topology_core::model::{Faults, Service};

    use crate::source::{Options, read_text};

    /// The Service with these annotations where annotations may use `example.com/rack`, and what is said.
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
            annotation_keys: Some(BTreeSet::from(["example.com/rack".into()])),
            ..Options::default()
        };
        let loaded = read_text("a.yaml", text.as_bytes(), &options).unwrap();
        let service = loaded.snapshot.services().next().unwrap().clone();
        let said = loaded.warnings.iter().map(ToString::to_string);
        let said = said.filter(|said| said.contains("may not use"));
        (service, said.collect())
    }

    /// Levels, what is avoided, and whether it is a boundary, of what is left.
    fn left(annotations: &[(&str, &str)]) -> (String, Faults) {
        let (service, said) = read(annotations);
        assert_eq!(said.is_empty(), service.faults == Faults::None, "{said:?}");
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

    #[test]
    fn the_annotation_that_names_the_label_is_reported() {
        let (_, said) = read(&[("keys", "zone,example.com/x"), ("avoid", "example.com/y")]);
        assert_eq!(said.len(), 2, "{said:#?}");
        let both = said.concat();
        for part in [
            "topology.ipvs-topo.io/keys",
            "label example.com/x",
            "io/avoid",
            "label example.com/y",
        ] {
            assert!(both.contains(part), "{part}: {said:#?}");
        }
    }
}
