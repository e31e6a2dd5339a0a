//! Compares the documentation of each annotation with what is accepted.

use topology_core::policy::{ANNOTATIONS, ValueKind};

use super::read;

/// Values at the documented limits, and just beyond.
fn ends(value: &ValueKind) -> (Vec<String>, Vec<String>) {
    match value {
        ValueKind::Word(words) => {
            let known = words.iter().map(ToString::to_string).collect();
            (known, vec!["Unknown".to_owned()])
        }
        ValueKind::Weights { most } => (
            vec![format!("zone={most},*=0")],
            vec![format!("zone={},*=0", most + 1)],
        ),
        ValueKind::Thresholds { most } => (
            ["zone=1", "zone=0%", "zone=100%"]
                .map(str::to_owned)
                .into_iter()
                .chain([format!("zone={most}")])
                .collect(),
            vec![
                "zone=0".to_owned(),
                "zone=101%".to_owned(),
                format!("zone={}", most + 1),
            ],
        ),
        ValueKind::Percent { least, most, none } => (
            vec![least.to_string(), format!("{most}%"), none.to_string()],
            match least.checked_sub(1) {
                Some(below) => vec![below.to_string(), (most + 1).to_string()],
                None => vec![(most + 1).to_string()],
            },
        ),
        ValueKind::Seconds { most } => (
            vec!["0".to_owned(), most.to_string()],
            vec![(most + 1).to_string(), "1s".to_owned()],
        ),
        ValueKind::Number { least, most } => (
            vec![least.to_string(), most.to_string()],
            vec![(least - 1).to_string(), (most + 1).to_string()],
        ),
        ValueKind::Levels => (vec!["node,zone,*".to_owned()], vec!["*,zone".to_owned()]),
        ValueKind::Domains => (
            vec!["node,zone:soft".to_owned()],
            vec!["zone:gently".to_owned()],
        ),
        ValueKind::Name => (vec!["near".to_owned()], vec!["Near".to_owned()]),
    }
}

/// The other annotations that an annotation needs.
fn beside(name: &str, value: &str) -> Vec<(&'static str, &'static str)> {
    match (name, value) {
        ("keys" | "weights" | "policy", _) | ("mode", "none") => Vec::new(),
        ("mode", "hard") | ("on-no-match", _) => vec![("keys", "node,zone")],
        ("mode", "weighted") | ("weighting", _) => vec![("weights", "zone=1,*=1")],
        _ => vec![("keys", "zone,*")],
    }
}

#[test]
fn documented_values_are_the_accepted_values() {
    for annotation in ANNOTATIONS {
        let name = annotation.name;
        let (good, bad) = ends(&annotation.value);
        let set = |value: &str| {
            let others = beside(name, value).into_iter();
            read(&others.chain([(name, value)]).collect::<Vec<_>>())
        };
        for value in good {
            assert!(set(&value).is_ok(), "{name}: {value}: {:?}", set(&value));
        }
        for value in bad {
            let errors = set(&value).unwrap_err();
            assert!(
                errors[0].field.ends_with(name),
                "{name}: {value}: {errors:?}"
            );
        }
    }
}
