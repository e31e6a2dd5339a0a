//! Annotations besides levels and mode: thresholds, caps, avoided domains, the scheduler.

use topology_core::policy::{
    Avoid, LevelKey, MinReady, Mode, OnNoMatch, Policy, PolicySource, Weighting,
};
use topology_core::scheduler::Scheduler;

use super::{accepted, refused};

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
        (policy.slow_start, policy.scheduler),
        (30, Some(Scheduler::Mh))
    );
}

#[test]
fn choices_are_off_by_default() {
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
        "level `zone` is listed twice",
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
    refused_with("avoid", &["zone,zone:soft"], "is listed twice");
    refused_with("avoid", &[""], "a level is empty");
    refused_with("on-no-match", &["Drop"], "use reject or drop");
    refused_with(
        "slow-start",
        &["86401", "-1", "30s"],
        "whole seconds from 0 to 86400",
    );
    refused_with(
        "scheduler",
        &["", "wrrr", "WRR", "w rr", "averyveryverylongname"],
        "is not a scheduler; use one",
    );
}

#[test]
fn choices_without_levels_are_refused() {
    for (name, value) in [
        ("overprovision", "140"),
        ("max-overload", "0"),
        ("weighting", "tier-share"),
        ("min-ready", "zone=2"),
        ("slow-start", "10"),
    ] {
        refused(
            &[("mode", "none"), (name, value)],
            "mode none has no levels",
        );
        refused(&[(name, value)], "needs weights or keys beside it");
    }
    refused(
        &[("keys", "zone,*"), ("weighting", "endpoint-bias")],
        "give weights instead of keys",
    );
    refused(
        &[("keys", "zone,*"), ("on-no-match", "drop")],
        "always finds an endpoint",
    );
    let mode_none = [("mode", "none"), ("scheduler", "mh"), ("avoid", "node")];
    assert_eq!(
        accepted(&mode_none, Mode::None, "").scheduler,
        Some(Scheduler::Mh)
    );
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
