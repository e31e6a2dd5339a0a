//! Annotations: what is accepted, what is refused, and in which words.

use topology_core::policy::{
    ANNOTATIONS, Asked, Avoid, EmptyTier, LevelKey, MinReady, Mode, OnNoMatch, PREFIX, Policy,
    PolicyError, PolicySource, Value, Weighting, from_annotations,
};

fn read(annotations: &[(&str, &str)]) -> Result<Option<Asked>, Vec<PolicyError>> {
    let long: Vec<(String, &str)> = annotations
        .iter()
        .map(|(name, value)| (format!("{PREFIX}{name}"), *value))
        .collect();
    from_annotations(long.iter().map(|(name, value)| (name.as_str(), *value)))
}

#[track_caller]
fn accepted(annotations: &[(&str, &str)], mode: Mode, levels: &str) -> Policy {
    let Some(Asked::Policy(policy)) = read(annotations).unwrap() else {
        panic!("no policy of its own");
    };
    let text: Vec<String> = (policy.levels.iter())
        .map(|level| format!("{}={}", level.key, level.weight))
        .collect();
    assert_eq!((policy.mode, text.join(",").as_str()), (mode, levels));
    assert_eq!(policy.source, PolicySource::Annotation);
    *policy
}

/// Every fault ends in what would be right.
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
fn a_mode_may_be_said_as_well() {
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
        "topology.ipvs-topo.io/weights: the weight in `zone=x` is out of range; give a whole number from 0 to 10000"
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
    assert_eq!(
        errors.unwrap_err().len(),
        2,
        "the mode is judged once the levels are sound"
    );
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
        "zone=80%",
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
    refused(&[("keys", "zone,zone")], "level `zone` stands twice");
    refused(
        &[("keys", "node,kubernetes.io/hostname")],
        "level `node` stands twice",
    );
    refused(
        &[("keys", "zone,topology.kubernetes.io/zone")],
        "level `zone` stands twice",
    );
    refused(&[("weights", "node=1,node=2")], "level `node` stands twice");
}

#[test]
fn v6_a_star_that_is_not_last_is_refused() {
    refused(
        &[("keys", "*,zone")],
        "`*` stands before another level; write it last",
    );
    refused(
        &[("weights", "node=1,*=2,zone=3")],
        "`*` stands before another level; write it last",
    );
}

#[test]
fn v8_what_is_no_label_key_is_refused() {
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
fn contradictions_are_refused_with_the_way_out() {
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
fn every_choice_is_read() {
    let policy = accepted(
        &[
            ("weights", "node=10,zone=3,*=1"),
            ("weighting", "endpoint-bias"),
            ("min-ready", "zone = 50%, node=2"),
            ("overprovision", "140"),
            ("max-overload", "20%"),
            ("avoid", "node, zone:soft"),
            ("on-no-match", "drop"),
            ("slow-start", "30"),
            ("scheduler", "mh"),
        ],
        Mode::Weighted,
        "node=10,zone=3,*=1",
    );
    let least = |count, percent| MinReady { count, percent };
    let avoid = |key, soft| {
        let key = LevelKey::parse(key).unwrap();
        Avoid { key, soft }
    };
    assert_eq!(policy.weighting, Weighting::EndpointBias);
    assert_eq!(policy.levels[0].min_ready, least(2, 0));
    assert_eq!(policy.levels[1].min_ready, least(1, 50));
    assert_eq!(policy.levels[2].min_ready, least(1, 0));
    assert_eq!(
        (policy.overprovision, policy.max_overload),
        (Some(140), Some(20))
    );
    assert_eq!(policy.avoid, [avoid("node", false), avoid("zone", true)]);
    assert_eq!(policy.on_no_match, OnNoMatch::Drop);
    assert_eq!(
        (policy.slow_start, policy.scheduler.as_deref()),
        (30, Some("mh"))
    );
}

#[test]
fn what_is_not_said_is_off() {
    let policy = accepted(&[("keys", "zone,*")], Mode::Prefer, "zone=100,*=0");
    let levels = policy.levels.clone();
    assert_eq!(
        policy,
        Policy::new(PolicySource::Annotation, Mode::Prefer, levels)
    );
    let off = [
        ("keys", "zone,*"),
        ("overprovision", "off"),
        ("max-overload", "off"),
    ];
    assert_eq!(accepted(&off, Mode::Prefer, "zone=100,*=0"), policy);
}

#[test]
fn balanced_is_prefer_with_a_cap() {
    let balanced = [("mode", "balanced"), ("keys", "zone,*")];
    let policy = accepted(&balanced, Mode::Balanced, "zone=100,*=0");
    assert_eq!(policy.max_overload, Some(0));
    let with_cap = [balanced[0], balanced[1], ("max-overload", "25")];
    assert_eq!(
        accepted(&with_cap, Mode::Balanced, "zone=100,*=0").max_overload,
        Some(25)
    );
    refused(&[("mode", "balanced")], "needs keys, such as keys: zone,*");
    refused(
        &[("mode", "balanced"), ("keys", "zone")],
        "end the keys with `*`",
    );
    refused(
        &[("mode", "balanced"), ("weights", "*=1")],
        "keys instead of weights",
    );
    let off = [balanced[0], balanced[1], ("max-overload", "off")];
    refused(&off, "give a percentage, or use mode prefer");
}

#[test]
fn a_policy_may_be_named_and_then_says_all() {
    assert_eq!(
        read(&[("policy", "near.v1")]),
        Ok(Some(Asked::Named("near.v1".into())))
    );
    refused(
        &[("policy", "near"), ("keys", "zone")],
        "the named policy says all",
    );
    refused(
        &[("policy", "near"), ("scheduler", "mh")],
        "the named policy says all",
    );
    for bad in ["", "Near", "-near", "near.", "other/near", "a b"] {
        refused(
            &[("policy", bad)],
            "is not a name; give the name of a TopologyPolicy",
        );
    }
}

#[test]
fn values_out_of_range_are_refused_with_the_range() {
    let refused_with = |name: &str, values: &[&str], words: &str| {
        for value in values {
            refused(&[("weights", "zone=1,*=1"), (name, value)], words);
        }
    };
    refused_with(
        "weighting",
        &["share", ""],
        "use tier-share or endpoint-bias",
    );
    refused_with(
        "min-ready",
        &["zone"],
        "write level=count or level=percent%",
    );
    refused_with(
        "min-ready",
        &["zone=0", "zone=101%", "zone=x", "zone=256%"],
        "from 1 to 10000 or 0% to 100%",
    );
    refused_with(
        "min-ready",
        &["zone=1,zone=50%"],
        "level `zone` stands twice",
    );
    refused_with("min-ready", &["node=2"], "level `node` is not in the list");
    refused_with("min-ready", &["*=2"], "has no next one to merge into");
    refused_with(
        "overprovision",
        &["99", "-1", "on", "10001"],
        "a percentage from 100 to 10000, or off",
    );
    refused_with(
        "max-overload",
        &["10001", "-1", "1.5", ""],
        "a percentage from 0 to 10000, or off",
    );
    refused_with(
        "avoid",
        &["zone:medium"],
        "write soft or hard after the colon",
    );
    refused_with("avoid", &["*"], "would avoid every endpoint");
    refused_with("avoid", &["zone,zone:soft"], "stands twice");
    refused_with("avoid", &[""], "a level is empty");
    refused_with("on-no-match", &["Drop"], "use reject or drop");
    refused_with(
        "slow-start",
        &["86401", "-1", "30s"],
        "whole seconds from 0 to 86400",
    );
    refused_with(
        "scheduler",
        &["", "WRR", "w rr", "averyveryverylongname"],
        "is not a scheduler; use one",
    );
}

#[test]
fn choices_without_anything_to_choose_about_are_refused() {
    for (name, value) in [
        ("overprovision", "140"),
        ("max-overload", "0"),
        ("weighting", "tier-share"),
        ("min-ready", "zone=2"),
    ] {
        refused(
            &[("mode", "none"), (name, value)],
            "mode none has no levels",
        );
        refused(&[(name, value)], "needs weights or keys beside it");
    }
    refused(
        &[("scheduler", "mh")],
        "or add mode none to keep all endpoints alike",
    );
    refused(
        &[("keys", "zone,*"), ("weighting", "endpoint-bias")],
        "give weights instead of keys",
    );
    refused(
        &[("keys", "zone,*"), ("on-no-match", "drop")],
        "always finds an endpoint",
    );
    let mode_none = [
        ("mode", "none"),
        ("scheduler", "mh"),
        ("slow-start", "10"),
        ("avoid", "node"),
    ];
    assert_eq!(accepted(&mode_none, Mode::None, "").slow_start, 10);
    let may_refuse = [
        ("keys", "zone,*"),
        ("on-no-match", "drop"),
        ("avoid", "node"),
    ];
    assert_eq!(
        accepted(&may_refuse, Mode::Prefer, "zone=100,*=0").on_no_match,
        OnNoMatch::Drop
    );
}

#[test]
fn an_unknown_annotation_is_refused_with_those_that_are_known() {
    refused(
        &[("weight", "zone=1")],
        "unknown annotation; known are mode, keys, weights",
    );
}

/// Values at the ends of what is documented, and just beyond.
fn ends(value: &Value) -> (Vec<String>, Vec<String>) {
    match value {
        Value::Word(words) => {
            let known = words.iter().map(ToString::to_string).collect();
            (known, vec!["Unknown".to_owned()])
        }
        Value::Weights { most } => (
            vec![format!("zone={most},*=0")],
            vec![format!("zone={},*=0", most + 1)],
        ),
        Value::Thresholds { most } => (
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
        Value::Percent { least, most, none } => (
            vec![least.to_string(), format!("{most}%"), none.to_string()],
            match least.checked_sub(1) {
                Some(below) => vec![below.to_string(), (most + 1).to_string()],
                None => vec![(most + 1).to_string()],
            },
        ),
        Value::Seconds { most } => (
            vec!["0".to_owned(), most.to_string()],
            vec![(most + 1).to_string(), "1s".to_owned()],
        ),
        Value::Levels => (vec!["node,zone,*".to_owned()], vec!["*,zone".to_owned()]),
        Value::Domains => (
            vec!["node,zone:soft".to_owned()],
            vec!["zone:gently".to_owned()],
        ),
        Value::Name => (vec!["near".to_owned()], vec!["Near".to_owned()]),
        Value::Scheduler(known) => {
            let known = known.iter().map(ToString::to_string).collect();
            (known, vec!["round robin".to_owned()])
        }
    }
}

/// What an annotation needs beside it.
fn beside(name: &str, value: &str) -> Vec<(&'static str, &'static str)> {
    match (name, value) {
        ("keys" | "weights" | "policy", _) | ("mode", "none") => Vec::new(),
        ("mode", "hard") | ("on-no-match", _) => vec![("keys", "node,zone")],
        ("mode", "weighted") | ("weighting", _) => vec![("weights", "zone=1,*=1")],
        _ => vec![("keys", "zone,*")],
    }
}

#[test]
fn what_is_documented_is_what_is_accepted() {
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
