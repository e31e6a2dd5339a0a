//! Valid and invalid annotations: the API server refuses exactly those that the agent ignores.

use std::fmt::Write as _;

use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;
use topology_core::policy::{PREFIX, from_annotations};

use crate::kubectl::{self, Namespace, folder, installed, service};

/// Every row of the reference's table of annotations, and invalid values next to its limits.
const ROWS: &[&[(&str, &str)]] = &[
    &[("mode", "hard"), ("keys", "zone")],
    &[("mode", "prefer"), ("keys", "node,zone,*")],
    &[("mode", "weighted"), ("weights", "node=80,zone=15,*=5")],
    &[("mode", "balanced"), ("keys", "zone,*")],
    &[("mode", "none")],
    &[("mode", "none"), ("weights", "zone=1,*=1")],
    &[
        ("mode", "none"),
        ("keys", "zone"),
        ("avoid", "node"),
        ("on-no-match", "drop"),
    ],
    &[(
        "keys",
        " kubernetes.io/hostname , example.com/rack,region,*\n",
    )],
    &[("weights", "zone=0010000,*=0")],
    &[("weights", "zone=1,*=1"), ("weighting", "endpoint-bias")],
    &[("weights", "zone=1,*=1"), ("empty-tier", "renormalize")],
    &[
        ("weights", "node=1,zone=1,*=1"),
        ("min-ready", "zone = 50 %, node=2"),
    ],
    &[("keys", "zone,*"), ("overprovision", "140")],
    &[
        ("keys", "zone,*"),
        ("overprovision", "off"),
        ("max-overload", "20 %"),
    ],
    &[
        ("keys", "zone,*"),
        ("avoid", "node:hard, example.com/rack:soft"),
        ("on-no-match", "reject"),
    ],
    &[("keys", "zone"), ("on-no-match", "drop")],
    &[("keys", "zone,*"), ("slow-start", "86400")],
    &[("keys", "zone,*"), ("scheduler", "mh")],
    &[("policy", "near.me-1")],
    &[("policy", "near"), ("keys", "zone")],
    &[("policy", "Near")],
    &[("policy", "near.")],
    &[("mode", "Hard"), ("keys", "zone")],
    &[("mode", "hard"), ("keys", "zone,*")],
    &[("mode", "hard"), ("weights", "zone=1")],
    &[("mode", "prefer"), ("keys", "zone")],
    &[("mode", "prefer")],
    &[
        ("mode", "balanced"),
        ("keys", "zone,*"),
        ("max-overload", "off"),
    ],
    &[("mode", "balanced"), ("weights", "*=1")],
    &[("mode", "weighted"), ("keys", "zone")],
    &[("mode", "none"), ("max-overload", "0")],
    &[("mode", "none"), ("on-no-match", "drop")],
    &[("mode", "none"), ("slow-start", "10")],
    &[("keys", "zone"), ("weights", "zone=1")],
    &[("keys", "")],
    &[("keys", "node,,zone")],
    &[("keys", "*,zone")],
    &[("keys", "zone,topology.kubernetes.io/zone")],
    &[("keys", "a b")],
    &[("keys", "Example.com/rack")],
    &[("keys", "a/b/c")],
    &[(
        "keys",
        "k1,k2,k3,k4,k5,k6,k7,k8,k9,k10,k11,k12,k13,k14,k15,*",
    )],
    &[(
        "keys",
        "k1,k2,k3,k4,k5,k6,k7,k8,k9,k10,k11,k12,k13,k14,k15,k16,*",
    )],
    &[(
        "avoid",
        "k1,k2,k3,k4,k5,k6,k7,k8,k9,k10,k11,k12,k13,k14,k15,k16",
    )],
    &[(
        "avoid",
        "k1,k2,k3,k4,k5,k6,k7,k8,k9,k10,k11,k12,k13,k14,k15,k16,k17",
    )],
    &[("weights", "zone=10001")],
    &[("weights", "zone=-1")],
    &[("weights", "zone=+1")],
    &[("weights", "zone=1.5")],
    &[("weights", "zone=80%")],
    &[("weights", "node=80%,*= 20 %")],
    &[("weights", "zone=101%")],
    &[("weights", "zone=0.8,*=0.2")],
    &[("weights", "zone=99,*=1"), ("subset", "256")],
    &[("weights", "zone=99,*=1"), ("subset", "0")],
    &[("subset", "256")],
    &[("mode", "none"), ("subset", "256")],
    &[("avoid", "node")],
    &[("scheduler", "mh")],
    &[("avoid", "node:soft"), ("scheduler", "mh")],
    &[("avoid", "node"), ("on-no-match", "drop")],
    &[("avoid", "node:soft"), ("on-no-match", "drop")],
    &[("slow-start", "30")],
    &[("weights", "zone")],
    &[("weights", "zone=99999999999999999999")],
    &[("weights", "node=1,=5")],
    &[("weights", "a=b=1")],
    &[("keys", "zone,*"), ("weighting", "tier-share")],
    &[("keys", "zone,*"), ("min-ready", "zone=0")],
    &[("keys", "zone,*"), ("min-ready", "zone=101%")],
    &[("keys", "zone,*"), ("min-ready", "*=2")],
    &[("keys", "zone,*"), ("min-ready", "node=2")],
    &[
        ("keys", "zone,*"),
        ("min-ready", "zone=1,topology.kubernetes.io/zone=2"),
    ],
    &[("keys", "zone,*"), ("overprovision", "99")],
    &[("keys", "zone,*"), ("overprovision", "%")],
    &[("keys", "zone,*"), ("max-overload", "")],
    &[("keys", "zone,*"), ("avoid", "*")],
    &[("keys", "zone,*"), ("avoid", "zone: soft")],
    &[("keys", "zone,*"), ("avoid", "zone:soft,zone")],
    &[
        ("keys", "zone,*"),
        ("avoid", "zone:soft"),
        ("on-no-match", "drop"),
    ],
    &[("keys", "zone,*"), ("slow-start", "30s")],
    &[("keys", "zone,*"), ("slow-start", "86401")],
    &[("keys", "zone,*"), ("scheduler", "averyveryverylongname")],
    &[("keys", "zone,*"), ("scheduler", "wrrr")],
    &[("scheduler", "wrrr")],
    &[("min-ready", "zone=2")],
    &[("weigths", "node=1")],
];

type Written = Vec<(String, String)>;

fn value(name: &'static str, values: &'static [&'static str]) -> BoxedStrategy<Written> {
    let value =
        prop::sample::select(values).prop_map(move |value| (name.to_owned(), value.to_owned()));
    prop::option::weighted(0.3, value)
        .prop_map(|pair| pair.into_iter().collect())
        .boxed()
}

/// Annotations that are valid or nearly so.
fn written() -> impl Strategy<Value = Written> {
    let level = "(node|zone|region|\\*|kubernetes\\.io/hostname|rack|a b|)";
    let weight = format!("{level} ?=? ?(0|1|80|10000|10001|-1|x)");
    let list = |part: &str| {
        let pattern = format!("{part}(, ?{part}){{0,3}}");
        proptest::string::string_regex(&pattern).unwrap()
    };
    let named = |name: &'static str, list: BoxedStrategy<String>, often: f64| {
        let pair = list.prop_map(move |value| (name.to_owned(), value));
        prop::option::weighted(often, pair).prop_map(|pair| pair.into_iter().collect::<Written>())
    };
    let parts = (
        named("keys", list(level).boxed(), 0.6),
        named("weights", list(&weight).boxed(), 0.3),
        named(
            "min-ready",
            list("(zone|node|\\*)=(0|1|50%|101%)").boxed(),
            0.1,
        ),
        named(
            "avoid",
            list("(zone|node|\\*)(:soft|:hard|:x|)").boxed(),
            0.2,
        ),
        value(
            "mode",
            &["hard", "prefer", "weighted", "balanced", "none", "Hard"],
        ),
        value("weighting", &["tier-share", "endpoint-bias", ""]),
        value("max-overload", &["0", "20%", "off", "x"]),
        value("on-no-match", &["reject", "drop"]),
    );
    parts.prop_map(|(a, b, c, d, e, f, g, h)| [a, b, c, d, e, f, g, h].concat())
}

/// Returns the sets on which the two differ, the number that both accept, and the number that both
/// refuse.
fn compare(sets: &[Written]) -> (String, usize, usize) {
    installed();
    let namespace = Namespace::new();
    let name = |at: usize| format!("row-{at:04}");
    let texts: Vec<String> = sets
        .iter()
        .enumerate()
        .map(|(at, set)| {
            let set: Vec<(&str, &str)> = set
                .iter()
                .map(|(name, value)| (&**name, &**value))
                .collect();
            service(&name(at), &set)
        })
        .collect();
    let folder = folder(&texts);
    let path = folder.path().to_str().unwrap();
    let arguments = [
        "create",
        "--dry-run=server",
        "-o",
        "name",
        "-n",
        &namespace.0,
        "-f",
        path,
    ];
    let output = kubectl::run(&arguments);
    let accepted = String::from_utf8(output.stdout).unwrap();
    let refused = String::from_utf8(output.stderr).unwrap();
    let (mut differ, mut both) = (String::new(), 0);
    for (at, set) in sets.iter().enumerate() {
        let full: Vec<(String, &str)> = set
            .iter()
            .map(|(name, value)| (format!("{PREFIX}{name}"), &**value))
            .collect();
        let parsed = from_annotations(full.iter().map(|(name, value)| (&**name, *value)));
        let by_server = accepted.contains(&format!("/{}\n", name(at)));
        let refusal = refused.lines().find(|line| line.contains(&name(at)));
        assert!(by_server != refusal.is_some(), "{set:?}: {refusal:?}");
        both += usize::from(by_server && parsed.is_ok());
        if parsed.is_ok() != by_server {
            writeln!(
                differ,
                "{set:?}\n  agent: {parsed:?}\n  server: {refusal:?}"
            )
            .unwrap();
        }
        let words = "denied request: topology.ipvs-topo.io/";
        let known = refusal.is_none_or(|text| {
            text.contains(words) || text.contains("denied request: unknown annotation")
        });
        assert!(known, "{refusal:?}");
    }
    (differ, both, sets.len() - both)
}

#[test]
fn agent_and_server_agree_on_every_row_of_the_reference() {
    let own = |set: &&[(&str, &str)]| -> Written {
        let pairs = set.iter();
        pairs
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect()
    };
    let sets: Vec<Written> = ROWS.iter().map(own).collect();
    let (differ, accepted, refused) = compare(&sets);
    assert_eq!(differ, "");
    assert_eq!(accepted + refused, ROWS.len());
    assert!(accepted >= 19, "{accepted}");
}

#[test]
fn agent_and_server_agree_on_random_annotations() {
    let mut runner = TestRunner::deterministic();
    let strategy = written();
    let sets: Vec<Written> = (0..400)
        .map(|_| strategy.new_tree(&mut runner).unwrap().current())
        .collect();
    let (differ, accepted, refused) = compare(&sets);
    assert_eq!(differ, "");
    assert!(accepted > 40 && refused > 100, "{accepted}, {refused}");
}

#[test]
fn a_change_that_does_not_touch_our_annotations_is_accepted() {
    installed();
    let namespace = Namespace::new();
    let named = ["-n", &namespace.0];
    let path = folder(&[service("cart", &[("keys", "zone,*")])]);
    let path = path.path().to_str().unwrap();
    kubectl::ok(&[&named[..], &["create", "-f", path]].concat());
    let change = |key: &str| {
        let mut arguments = named.to_vec();
        arguments.extend(["annotate", "service", "cart", "--overwrite", key]);
        kubectl::run(&arguments)
    };
    assert!(change("other.example.com/mode=other").status.success());
    let invalid = change("topology.ipvs-topo.io/keys=zone,,*");
    let stderr = String::from_utf8(invalid.stderr).unwrap();
    assert!(stderr.contains("an empty level is not allowed"), "{stderr}");
    assert!(change("topology.ipvs-topo.io/keys-").status.success());
}
