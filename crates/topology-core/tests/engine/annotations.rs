//! Annotations: accepted values, errors, and their texts.

mod choices;
mod costs;
mod documented;
mod faults;

use topology_core::policy::{
    AnnotationChoice, EmptyTier, Mode, PREFIX, Policy, PolicyError, PolicySource, from_annotations,
};

fn read(annotations: &[(&str, &str)]) -> Result<Option<AnnotationChoice>, Vec<PolicyError>> {
    let long: Vec<(String, &str)> = annotations
        .iter()
        .map(|(name, value)| (format!("{PREFIX}{name}"), *value))
        .collect();
    from_annotations(long.iter().map(|(name, value)| (name.as_str(), *value)))
}

#[track_caller]
fn accepted(annotations: &[(&str, &str)], mode: Mode, levels: &str) -> Policy {
    let Some(AnnotationChoice::Policy(policy)) = read(annotations).unwrap() else {
        panic!("no policy of its own");
    };
    let text: Vec<String> = (policy.levels.iter())
        .map(|level| format!("{}={}", level.key, level.weight))
        .collect();
    assert_eq!((policy.mode, text.join(",").as_str()), (mode, levels));
    assert_eq!(policy.source, PolicySource::Annotation);
    *policy
}

/// Every error ends with a valid alternative.
#[track_caller]
fn refused(annotations: &[(&str, &str)], words: &str) {
    let errors: Vec<String> = read(annotations)
        .unwrap_err()
        .iter()
        .map(ToString::to_string)
        .collect();
    assert!(
        errors.iter().any(|error| error.contains(words)),
        "{errors:#?}"
    );
}

#[test]
fn a_service_without_our_annotations_has_no_policy() {
    let others = [
        ("service.kubernetes.io/topology-mode", "Auto"),
        ("topology.ipvs-topo.iox/keys", "zone"),
    ];
    assert_eq!(from_annotations(others), Ok(None));
}

#[test]
fn the_mode_follows_from_the_others() {
    accepted(
        &[("weights", "node=80,zone=15,*=5")],
        Mode::Weighted,
        "node=80,zone=15,*=5",
    );
    accepted(
        &[("keys", "node,zone,*")],
        Mode::Prefer,
        "node=100,zone=0,*=0",
    );
    accepted(&[("keys", "node,zone")], Mode::Hard, "node=100,zone=0");
}

#[test]
fn a_mode_may_be_set_as_well() {
    accepted(
        &[("mode", "weighted"), ("weights", "zone=1")],
        Mode::Weighted,
        "zone=1",
    );
    accepted(&[("mode", "prefer"), ("keys", "*")], Mode::Prefer, "*=100");
    accepted(
        &[("mode", "hard"), ("keys", "zone")],
        Mode::Hard,
        "zone=100",
    );
    accepted(&[("mode", "none")], Mode::None, "");
    accepted(
        &[("mode", "none"), ("weights", "zone=1,*=1")],
        Mode::None,
        "",
    );
}

#[test]
fn any_label_is_a_level_and_spaces_do_not_matter() {
    accepted(
        &[(
            "weights",
            " kubernetes.io/hostname = 3, example.com/rack=2,region=1 , *=0\n",
        )],
        Mode::Weighted,
        "node=3,example.com/rack=2,region=1,*=0",
    );
}

#[test]
fn a_list_without_a_star_is_a_boundary() {
    assert!(
        accepted(
            &[("weights", "node=80,zone=20")],
            Mode::Weighted,
            "node=80,zone=20"
        )
        .is_bounded()
    );
    assert!(accepted(&[("keys", "zone")], Mode::Hard, "zone=100").is_bounded());
    assert!(!accepted(&[("keys", "zone,*")], Mode::Prefer, "zone=100,*=0").is_bounded());
    assert!(!accepted(&[("mode", "none")], Mode::None, "").is_bounded());
}

#[test]
fn the_rule_for_empty_levels_is_read() {
    let annotations = [("weights", "zone=1,*=1"), ("empty-tier", "renormalize")];
    let policy = accepted(&annotations, Mode::Weighted, "zone=1,*=1");
    assert_eq!(policy.empty_tier, EmptyTier::Renormalize);
    refused(
        &[("weights", "*=1"), ("empty-tier", "Cascade")],
        "use cascade or renormalize",
    );
    refused(
        &[("empty-tier", "cascade")],
        "needs weights or keys beside it",
    );
}

#[test]
fn a_fault_names_annotation_and_remedy_and_keeps_the_value() {
    let errors = read(&[("weights", "node=80,zone=x")]).unwrap_err();
    assert_eq!(
        errors[0].to_string(),
        "topology.ipvs-topo.io/weights: the weight in `zone=x` is out of range; give a whole number from 0 to 10000, or 0% to 100%"
    );
    assert_eq!(errors[0].value, "node=80,zone=x");
}

#[test]
fn every_fault_is_reported_at_once() {
    let errors = read(&[
        ("mode", "Hard"),
        ("keys", "node,,zone"),
        ("weigths", "node=1"),
    ]);
    assert_eq!(errors.unwrap_err().len(), 3,);
    refused(&[("mode", "Hard"), ("keys", "zone")], "in lower case");
}

#[test]
fn weights_are_whole_numbers_in_range() {
    accepted(
        &[("weights", "zone=10000,*=0")],
        Mode::Weighted,
        "zone=10000,*=0",
    );
    for bad in [
        "zone=10001",
        "zone=99999999999999999999",
        "zone=-1",
        "zone=+1",
        "zone=1.5",
        "zone=",
        "zone=101%",
        "zone=%",
    ] {
        refused(
            &[("weights", bad)],
            "is out of range; give a whole number from 0 to 10000",
        );
    }
    refused(&[("weights", "zone")], "has no weight");
    refused(&[("weights", "")], "has no weight");
}

#[test]
fn v4_more_than_16_levels_are_refused() {
    let list = |count: usize| {
        (0..count)
            .map(|index| format!("k{index}"))
            .collect::<Vec<_>>()
            .join(",")
    };
    assert!(read(&[("keys", &list(16))]).is_ok());
    refused(&[("keys", &list(17))], "at most 16 are allowed");
}

#[test]
fn v5_a_level_twice_is_refused_even_under_two_names() {
    refused(&[("keys", "zone,zone")], "level `zone` is listed twice");
    refused(
        &[("keys", "node,kubernetes.io/hostname")],
        "level `node` is listed twice",
    );
    refused(
        &[("keys", "zone,topology.kubernetes.io/zone")],
        "level `zone` is listed twice",
    );
    refused(
        &[("weights", "node=1,node=2")],
        "level `node` is listed twice",
    );
}

#[test]
fn v6_a_star_that_is_not_last_is_refused() {
    refused(
        &[("keys", "*,zone")],
        "`*` comes before another level; write it last",
    );
    refused(
        &[("weights", "node=1,*=2,zone=3")],
        "`*` comes before another level; write it last",
    );
}

#[test]
fn v8_an_invalid_label_key_is_refused() {
    for key in [
        "-rack",
        "rack-",
        "ra ck",
        "a/b/c",
        "Example.com/rack",
        "/rack",
        "r*ck",
        "example.com/",
    ] {
        refused(&[("keys", key)], "is not a label key; use");
    }
}

#[test]
fn v9_an_empty_element_is_refused() {
    for list in ["node,", ",node", "node,,zone", ""] {
        refused(&[("keys", list)], "a level is empty");
    }
    refused(&[("weights", "node=1,=5")], "a level is empty");
}

#[test]
fn contradictions_are_refused_with_a_remedy() {
    refused(
        &[("keys", "zone"), ("weights", "zone=1")],
        "keep one of them",
    );
    refused(
        &[("mode", "hard"), ("keys", "zone,*")],
        "remove `*`, or use mode prefer",
    );
    refused(
        &[("mode", "prefer"), ("keys", "zone")],
        "end the keys with `*`, or use mode hard",
    );
    refused(&[("mode", "weighted"), ("keys", "zone")], "needs weights");
    refused(
        &[("mode", "hard"), ("weights", "zone=1")],
        "use mode weighted, or keys instead of weights",
    );
    refused(
        &[("mode", "prefer"), ("weights", "*=1")],
        "use mode weighted, or keys instead of weights",
    );
    refused(&[("mode", "hard")], "needs keys");
    refused(&[("mode", "weighted")], "needs weights");
}

#[test]
fn a_named_policy_decides_alone() {
    assert_eq!(
        read(&[("policy", "near.v1")]),
        Ok(Some(AnnotationChoice::Named("near.v1".into())))
    );
    refused(
        &[("policy", "near"), ("keys", "zone")],
        "the named policy decides alone",
    );
    refused(
        &[("policy", "near"), ("scheduler", "mh")],
        "the named policy decides alone",
    );
    for bad in ["", "Near", "-near", "near.", "other/near", "a b"] {
        refused(
            &[("policy", bad)],
            "is not a name; give the name of a TopologyPolicy",
        );
    }
}

#[test]
fn an_unknown_annotation_is_refused_with_a_list_of_known_ones() {
    refused(
        &[("weight", "zone=1")],
        "unknown annotation; known are mode, keys, weights",
    );
}
