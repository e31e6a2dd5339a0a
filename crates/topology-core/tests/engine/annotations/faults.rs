//! An invalid annotation is ignored, and never removes a boundary: every row of the table in docs/topology.md.

use topology_core::policy::{
    AnnotationChoice, AnnotationReading, OnNoMatch, PREFIX, Policy, ZONE, beside_topology_keys,
    read_annotations, read_topology_keys,
};

fn read(annotations: &[(&str, &str)]) -> AnnotationReading {
    read_beside(annotations, None)
}

/// Reads annotations of a Service with these `topologyKeys`.
fn read_beside(annotations: &[(&str, &str)], keys: Option<&Policy>) -> AnnotationReading {
    let long: Vec<(String, &str)> = annotations
        .iter()
        .map(|(name, value)| (format!("{PREFIX}{name}"), *value))
        .collect();
    let long = long.iter().map(|(name, value)| (&**name, Some(*value)));
    AnnotationReading::beside(long, keys)
}

fn levels(policy: &Policy) -> String {
    let levels = policy.levels.iter();
    let levels: Vec<String> = levels
        .map(|level| format!("{}={}", level.key, level.weight))
        .collect();
    format!("{} {}", policy.mode.as_str(), levels.join(","))
}

/// The result for annotations with an error.
fn holds(reading: &AnnotationReading) -> String {
    match &reading.asked {
        Some(_) if reading.boundary_unread => "refuse".to_owned(),
        Some(AnnotationChoice::Policy(policy)) if policy.adds => "added".to_owned(),
        Some(AnnotationChoice::Policy(policy)) => levels(policy),
        Some(AnnotationChoice::Named(name)) => format!("policy {name}"),
        None => "nothing".to_owned(),
    }
}

/// Annotations with one error, and the result.
type Case = (&'static [(&'static str, &'static str)], &'static str);

/// The beginning of a row of the table, and its cases.
type Row = (&'static str, &'static [Case]);

const ROWS: &[Row] = &[
    (
        "an unknown annotation; a value out of range",
        &[
            (
                &[("mode", "hard"), ("keys", "zone"), ("slow-start", "5m")],
                "hard zone=100",
            ),
            (
                &[("mode", "hard"), ("keys", "zone"), ("weigths", "node=1")],
                "hard zone=100",
            ),
            (
                &[("mode", "hard"), ("keys", "zone"), ("avoid", "zone:gently")],
                "hard zone=100",
            ),
            (
                &[("mode", "hard"), ("keys", "zone"), ("scheduler", "wrrr")],
                "hard zone=100",
            ),
        ],
    ),
    (
        "a setting that contradicts mode or levels",
        &[
            (
                &[
                    ("mode", "hard"),
                    ("keys", "zone"),
                    ("weighting", "endpoint-bias"),
                ],
                "hard zone=100",
            ),
            (
                &[("mode", "hard"), ("keys", "zone"), ("min-ready", "node=2")],
                "hard zone=100",
            ),
            (
                &[("keys", "zone,*"), ("on-no-match", "drop")],
                "prefer zone=100,*=0",
            ),
            (
                &[
                    ("mode", "balanced"),
                    ("keys", "zone,*"),
                    ("max-overload", "off"),
                ],
                "balanced zone=100,*=0",
            ),
            (&[("mode", "none"), ("overprovision", "140")], "none "),
            (&[("mode", "none"), ("slow-start", "10")], "none "),
        ],
    ),
    (
        "an invalid `mode`",
        &[
            (&[("mode", "Hard"), ("keys", "zone")], "hard zone=100"),
            (
                &[("mode", "Hard"), ("keys", "zone,*")],
                "prefer zone=100,*=0",
            ),
            (
                &[("mode", "hrad"), ("weights", "node=8,zone=2")],
                "weighted node=8,zone=2",
            ),
            (&[("mode", "Hard")], "nothing"),
        ],
    ),
    (
        "mode and levels contradict each other",
        &[
            (&[("mode", "hard"), ("keys", "zone,*")], "hard zone=100"),
            (&[("mode", "hard"), ("keys", "*")], "refuse"),
            (
                &[("mode", "hard"), ("weights", "node=8,*=2")],
                "weighted node=8",
            ),
            (&[("mode", "prefer"), ("keys", "zone")], "hard zone=100"),
            (&[("mode", "balanced"), ("keys", "zone")], "hard zone=100"),
            (&[("mode", "weighted"), ("keys", "zone")], "hard zone=100"),
        ],
    ),
    (
        "`keys` and `weights`",
        &[
            (
                &[("keys", "zone"), ("weights", "zone=1,*=1")],
                "hard zone=100",
            ),
            (
                &[("keys", "zone,*"), ("weights", "zone=1")],
                "weighted zone=1",
            ),
            (
                &[("keys", "zone,*"), ("weights", "zone=1,*=1")],
                "weighted zone=1,*=1",
            ),
            (
                &[
                    ("mode", "prefer"),
                    ("keys", "zone,*"),
                    ("weights", "zone=1,*=1"),
                ],
                "prefer zone=100,*=0",
            ),
            (
                &[
                    ("mode", "weighted"),
                    ("keys", "zone,*"),
                    ("weights", "zone=1,*=1"),
                ],
                "weighted zone=1,*=1",
            ),
        ],
    ),
    (
        "`policy` with others",
        &[
            (&[("policy", "near"), ("keys", "zone")], "hard zone=100"),
            (&[("policy", "near"), ("keys", "zone,*")], "policy near"),
            (&[("policy", "near"), ("scheduler", "mh")], "policy near"),
        ],
    ),
    (
        "a level is listed twice",
        &[
            (&[("keys", "zone,zone")], "hard zone=100"),
            (&[("weights", "zone=3,zone=1,*=1")], "weighted zone=3,*=1"),
        ],
    ),
    (
        "the levels of a hard policy are unreadable",
        &[
            (&[("mode", "hard")], "refuse"),
            (&[("mode", "hard"), ("keys", "zo ne")], "refuse"),
            (&[("mode", "hard"), ("keys", "zo ne,*")], "refuse"),
            (&[("keys", "node,,zone")], "refuse"),
            (&[("keys", "*,zone")], "refuse"),
            (&[("weights", "node=80,zone=x")], "refuse"),
            (&[("weights", "node=0.8,zone=0.2")], "refuse"),
            (&[("mode", "Hard"), ("keys", "a b")], "refuse"),
            (&[("keys", "a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q")], "refuse"),
        ],
    ),
    (
        "`policy` is not a valid name",
        &[
            (&[("policy", "Near")], "refuse"),
            (&[("policy", "")], "refuse"),
            (&[("policy", "Near"), ("keys", "zone,*")], "refuse"),
            (&[("policy", "Near"), ("keys", "zone")], "hard zone=100"),
        ],
    ),
    // Rows that need other objects or a flag are covered by tests of the resolver and of the conversion.
    ("`policy` names a TopologyPolicy that does not exist", &[]),
    (
        "a label that [`--annotation-label-keys`](agent.md#labels-in-annotations) does not name, in `avoid`",
        &[],
    ),
    ("the same in `keys` or `weights` of a boundary", &[]),
    ("the same in other `keys` or `weights`", &[]),
    (
        "the levels of another policy are unreadable",
        &[
            (&[("keys", "zo ne,*")], "nothing"),
            (&[("keys", "zo ne,*"), ("scheduler", "mh")], "added"),
            (&[("weights", "node=x,*=5")], "nothing"),
            (&[("mode", "prefer"), ("keys", "zo ne")], "nothing"),
            (&[("mode", "none"), ("keys", "zo ne")], "none "),
            (&[("mode", "prefer")], "nothing"),
        ],
    ),
    // Not about annotations: covered by the case `topology-keys` of the golden tests of `cluster`.
    ("`topologyKeys` with `externalTrafficPolicy: Local`", &[]),
];

#[test]
fn a_fault_costs_its_annotation_and_never_opens_a_boundary() {
    for (annotations, expected) in ROWS.iter().flat_map(|(_, cases)| *cases) {
        let reading = read(annotations);
        assert!(!reading.errors.is_empty(), "{annotations:?}");
        assert_eq!(holds(&reading), *expected, "{annotations:?}: {reading:?}");
    }
}

#[test]
fn every_row_of_the_documented_table_is_tried_and_no_other() {
    let documented = include_str!("../../../../../docs/topology.md");
    let (_, section) = documented
        .split_once("### An annotation that is not valid")
        .unwrap();
    let (_, table) = section.split_once("| --- | --- |\n").unwrap();
    let rows = table.lines().map_while(|line| line.strip_prefix("| "));
    let rows: Vec<&str> = rows.collect();
    assert_eq!(rows.len(), ROWS.len(), "{rows:#?}");
    for (row, (beginning, _)) in rows.iter().zip(ROWS) {
        assert!(row.starts_with(beginning), "{row}: {beginning}");
    }
}

#[test]
fn a_list_that_is_not_text_is_a_boundary_unless_the_mode_says_otherwise() {
    let keys = format!("{PREFIX}keys");
    let mode = format!("{PREFIX}mode");
    let reading = read_annotations([(&*keys, None)]);
    assert_eq!(holds(&reading), "refuse");
    let reading = read_annotations([(&*keys, None), (&*mode, Some("prefer"))]);
    assert_eq!(holds(&reading), "nothing");
}

#[test]
fn topology_keys_that_kubernetes_refused_never_open_a_boundary() {
    let many: Vec<String> = (0..17).map(|at| format!("k{at}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let (zone, rack) = ("topology.kubernetes.io/zone", "example.com/rack");
    let rows: [(&[&str], &str); 6] = [
        (&[zone, zone], "hard zone=100"),
        (&["*", zone], "refuse"),
        (&[zone, "", rack], "refuse"),
        (&["not a label!"], "refuse"),
        (&["not a label!", "*"], "nothing"),
        (&many, "refuse"),
    ];
    for (keys, expected) in rows {
        let reading = read_topology_keys(keys);
        assert!(!reading.errors.is_empty(), "{keys:?}");
        let holds = match &reading.policy {
            Some(_) if reading.boundary_unread => "refuse".to_owned(),
            Some(policy) => levels(policy),
            None => "nothing".to_owned(),
        };
        assert_eq!(holds, expected, "{keys:?}");
    }
}

#[test]
fn the_word_zone_in_topology_keys_is_a_label_and_shown_as_one() {
    let reading = read_topology_keys(&["zone", "topology.kubernetes.io/zone"]);
    let policy = reading.policy.unwrap();
    assert_eq!(levels(&policy), "hard label zone=100,zone=0");
    let bad = read_topology_keys(&["a b"]);
    assert!(
        bad.errors[0]
            .problem
            .contains("topology.kubernetes.io/zone"),
        "{:?}",
        bad.errors
    );
}

#[test]
fn weights_may_be_percentages_and_a_fraction_is_explained() {
    let reading = read(&[("weights", "node=80%,*= 20 %")]);
    assert_eq!(reading.errors, []);
    assert_eq!(holds(&reading), "weighted node=80,*=20");
    for (written, words) in [
        ("0.8", "node=80 or node=80%"),
        (".8", "node=80 or node=80%"),
        ("1.0", "node=100 or node=100%"),
        ("0.125", "node=125, and the others as parts of 1000 too"),
        ("1.5", "out of range"),
        ("0.00001", "out of range"),
        ("0.05", "node=5 or node=5%"),
    ] {
        let reading = read(&[("weights", &format!("node={written},*=1"))]);
        let problem = &reading.errors[0].problem;
        assert!(problem.contains(words), "{problem}");
    }
}

#[test]
fn avoid_and_scheduler_need_no_levels() {
    for set in [
        &[("scheduler", "mh")][..],
        &[("avoid", "node")],
        &[("avoid", "zone:soft"), ("scheduler", "sh")],
        &[("avoid", "node"), ("on-no-match", "drop")],
    ] {
        let reading = read(set);
        assert_eq!(reading.errors, [], "{set:?}");
        assert_eq!(holds(&reading), "added", "{set:?}");
    }
    for name in ["on-no-match", "slow-start", "subset", "min-ready"] {
        let value = match name {
            "on-no-match" => "drop",
            "min-ready" => "zone=2",
            _ => "10",
        };
        assert_eq!(read(&[(name, value)]).errors.len(), 1, "{name}");
    }
}

/// The boundary that it is about is in the keys.
#[test]
fn on_no_match_may_be_the_only_annotation_beside_hard_topology_keys() {
    let of = |keys: &[&str], annotations: &[(&str, &str)]| {
        let keys = read_topology_keys(keys).policy;
        let reading = read_beside(annotations, keys.as_ref());
        let both = beside_topology_keys(reading.asked, keys);
        let Some(AnnotationChoice::Policy(policy)) = both else {
            panic!("no policy");
        };
        (reading.errors.len(), policy.on_no_match)
    };
    let drop = [("on-no-match", "drop")];
    assert_eq!(of(&[ZONE], &drop), (0, OnNoMatch::Drop));
    assert_eq!(of(&["not a label!"], &drop), (0, OnNoMatch::Drop));
    let reject = [("on-no-match", "reject")];
    assert_eq!(of(&[ZONE], &reject), (0, OnNoMatch::Reject));
    let with_scheduler = [drop[0], ("scheduler", "mh")];
    assert_eq!(of(&[ZONE], &with_scheduler), (0, OnNoMatch::Drop));
    assert_eq!(of(&[ZONE, "*"], &drop), (1, OnNoMatch::Reject));
    let own_levels = [drop[0], ("keys", "zone,*")];
    assert_eq!(of(&[ZONE], &own_levels), (1, OnNoMatch::Reject));
}

#[test]
fn subset_is_an_annotation() {
    let reading = read(&[("weights", "zone=99,*=1"), ("subset", "256")]);
    let Some(AnnotationChoice::Policy(policy)) = reading.asked else {
        panic!("no policy");
    };
    assert_eq!(policy.subset_max_weight, Some(256));
}
