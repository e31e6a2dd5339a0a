//! Faults that some rows of the reference combine, here one per row, so that no fault hides
//! another.

use crate::rows::{Row, agree, loaded};

const POLICIES: &[(&str, &str)] = &[
    (
        "any-first",
        "{mode: Weighted, levels: [{any: true, weight: 1}, {key: zone, weight: 1}]}",
    ),
    (
        "level-of-a-star",
        r#"{mode: Prefer, levels: [{key: "*"}, {any: true}]}"#,
    ),
    (
        "weight-above",
        "{mode: Weighted, levels: [{key: node, weight: 10001}, {any: true, weight: 1}]}",
    ),
    (
        "weight-below",
        "{mode: Weighted, levels: [{key: node, weight: -1}, {any: true, weight: 1}]}",
    ),
    (
        "weight-in-parts",
        "{mode: Weighted, levels: [{key: node, weight: 1.5}, {any: true, weight: 1}]}",
    ),
    (
        "weight-in-quotes",
        r#"{mode: Weighted, levels: [{key: node, weight: "60"}, {any: true, weight: 1}]}"#,
    ),
    (
        "weight-in-words",
        "{mode: Weighted, levels: [{key: node, weight: many}, {any: true, weight: 1}]}",
    ),
    (
        "weight-in-a-list",
        "{mode: Weighted, levels: [{key: node, weight: [1]}, {any: true, weight: 1}]}",
    ),
    (
        "unknown-field",
        "{mode: Prefer, wieghting: TierShare, levels: [{key: node}, {any: true}]}",
    ),
    (
        "unknown-in-a-level",
        "{mode: Prefer, levels: [{key: node, wieght: 1}, {any: true}]}",
    ),
    (
        "unknown-in-the-guard",
        "{mode: None, guard: {maxOverload: 20}}",
    ),
    (
        "key-with-a-space",
        r#"{mode: Prefer, levels: [{key: "a b"}, {any: true}]}"#,
    ),
    (
        "key-with-a-dash",
        "{mode: Prefer, levels: [{key: -a}, {any: true}]}",
    ),
    (
        "key-in-capitals",
        "{mode: Prefer, levels: [{key: Example.com/rack}, {any: true}]}",
    ),
    (
        "key-without-a-prefix",
        "{mode: Prefer, levels: [{key: /x}, {any: true}]}",
    ),
    (
        "empty-key",
        r#"{mode: Prefer, levels: [{key: ""}, {any: true}]}"#,
    ),
    (
        "count-of-any",
        "{mode: Prefer, levels: [{key: node}, {any: true, minReadyEndpoints: 2}]}",
    ),
    (
        "percent-of-any",
        "{mode: Prefer, levels: [{key: node}, {any: true, minReadyPercent: 1}]}",
    ),
    (
        "count-of-nothing",
        "{mode: Hard, levels: [{key: node, minReadyEndpoints: 0}, {key: zone}]}",
    ),
    (
        "percent-above",
        "{mode: Hard, levels: [{key: node, minReadyPercent: 101}, {key: zone}]}",
    ),
    (
        "few-in-hard",
        "{mode: Hard, levels: [{key: node}], guard: {minEndpoints: 6}}",
    ),
    (
        "panic-in-hard-alone",
        "{mode: Hard, levels: [{key: node}], guard: {panicPercent: 50}}",
    ),
    (
        "share-above",
        "{mode: Balanced, levels: [{key: zone}, {any: true}], guard: {demand: Static, staticDemand: {a: 101}}}",
    ),
    ("avoid-a-star", r#"{mode: None, avoid: [{key: "*"}]}"#),
    ("avoid-nothing", "{mode: None, avoid: [{mode: Soft}]}"),
    (
        "overprovision-below",
        "{mode: None, spill: {overprovisionPercent: 99}}",
    ),
    (
        "hold-below",
        "{mode: None, spill: {recoveryHoldSeconds: -1}}",
    ),
    (
        "overload-below",
        "{mode: None, guard: {maxOverloadPercent: -1}}",
    ),
    ("few-below", "{mode: None, guard: {minEndpoints: -1}}"),
    ("panic-above", "{mode: None, guard: {panicPercent: 101}}"),
    ("port-twice", "{mode: None, portNames: [http, http]}"),
    ("empty-port", r#"{mode: None, portNames: [""]}"#),
    ("port-in-capitals", "{mode: None, portNames: [HTTP]}"),
    (
        "mode-in-lower-case",
        "{mode: prefer, levels: [{key: node}, {any: true}]}",
    ),
    ("tier-in-lower-case", "{mode: None, emptyTier: cascade}"),
    (
        "limit-twice",
        "{mode: None, ownerLimits: {allowedModes: [Hard, Hard]}}",
    ),
    (
        "unknown-limit",
        "{mode: None, ownerLimits: {allowedModes: [soft]}}",
    ),
    (
        "limit-below",
        "{mode: None, ownerLimits: {minMaxOverloadPercent: -1}}",
    ),
    (
        "label-with-a-space",
        r#"{mode: None, serviceSelector: {matchLabels: {a: "b c"}}}"#,
    ),
    (
        "in-nothing",
        "{mode: None, serviceSelector: {matchExpressions: [{key: a, operator: In}]}}",
    ),
    (
        "exists-with-values",
        "{mode: None, nodeSelector: {matchExpressions: [{key: a, operator: Exists, values: [b]}]}}",
    ),
    (
        "operator-in-lower-case",
        "{mode: None, serviceSelector: {matchExpressions: [{key: a, operator: exists}]}}",
    ),
    (
        "expression-without-a-key",
        "{mode: None, serviceSelector: {matchExpressions: [{operator: Exists}]}}",
    ),
    (
        "unknown-selector",
        "{mode: None, namespaceSelector: {labels: {a: b}}}",
    ),
    ("selector-of-a-list", "{mode: None, nodeSelector: [a]}"),
    ("selector-of-text", "{mode: None, serviceSelector: text}"),
    ("mode-of-a-list", "{mode: [Hard], levels: [{key: node}]}"),
    ("levels-of-a-mapping", "{mode: None, levels: {key: node}}"),
    ("guard-of-text", "{mode: None, guard: text}"),
    ("avoid-of-text", "{mode: None, avoid: none}"),
    ("spill-of-a-list", "{mode: None, spill: []}"),
    ("subset-of-a-number", "{mode: None, subset: 256}"),
    ("priority-in-words", "{mode: None, priority: high}"),
    ("ports-of-text", "{mode: None, portNames: http}"),
];

const DRAINS: &[(&str, &str)] = &[
    (
        "value-twice",
        "{match: {key: zone, values: [b, b]}, expiresAt: 2025-11-22T10:00:00Z}",
    ),
    (
        "empty-value",
        r#"{match: {key: zone, values: [""]}, expiresAt: 2025-11-22T10:00:00Z}"#,
    ),
    (
        "value-of-a-star",
        r#"{match: {key: zone, values: ["*"]}, expiresAt: 2025-11-22T10:00:00Z}"#,
    ),
    (
        "value-with-a-dash",
        "{match: {key: zone, values: [-x]}, expiresAt: 2025-11-22T10:00:00Z}",
    ),
    (
        "unknown-scope",
        "{match: {key: zone, values: [b]}, expiresAt: 2025-11-22T10:00:00Z, scope: All}",
    ),
    (
        "unknown-for-the-last",
        "{match: {key: zone, values: [b]}, expiresAt: 2025-11-22T10:00:00Z, onLastDomain: Drain}",
    ),
    (
        "unknown-for-the-hard",
        "{match: {key: zone, values: [b]}, expiresAt: 2025-11-22T10:00:00Z, hardServices: Never}",
    ),
    (
        "ramp-above",
        "{match: {key: zone, values: [b]}, expiresAt: 2025-11-22T10:00:00Z, rampSeconds: 86401}",
    ),
    (
        "unknown-field",
        "{match: {key: zone, values: [b]}, expiresAt: 2025-11-22T10:00:00Z, force: true}",
    ),
];

fn rows(kind: &str, specs: &[(&str, &str)]) -> Vec<Row> {
    let row = |(name, spec): &(&str, &str)| Row {
        name: (*name).to_owned(),
        text: format!(
            "apiVersion: topology.ipvs-topo.io/v1alpha1\nkind: {kind}\nmetadata: {{name: {name}, creationTimestamp: \"2025-11-22T08:00:00Z\"}}\nspec: {spec}\n"
        ),
    };
    specs.iter().map(row).collect()
}

/// Fails unless the agent finds one fault in each row and the API server refuses each row.
#[track_caller]
fn each_is_refused_by_both(kind: &str, specs: &[(&str, &str)]) {
    let rows = rows(kind, specs);
    for row in &rows {
        let warnings = loaded(row).warnings;
        assert_eq!(warnings.len(), 1, "{}: {warnings:?}", row.name);
    }
    assert_eq!(agree(&rows), (0, rows.len()));
}

#[test]
fn a_policy_with_one_fault_is_refused_by_both() {
    each_is_refused_by_both("ClusterTopologyPolicy", POLICIES);
}

#[test]
fn a_drain_with_one_fault_is_refused_by_both() {
    each_is_refused_by_both("TopologyDrain", DRAINS);
}

#[test]
fn files_may_omit_quotes_and_the_api_server_drops_entries_without_a_value() {
    let drains = [
        (
            "number-for-a-text",
            "{match: {key: zone, values: [1]}, expiresAt: 2025-11-22T10:00:00Z}",
        ),
        (
            "flag-for-a-text",
            "{match: {key: zone, values: [b]}, expiresAt: 2025-11-22T10:00:00Z, reason: true}",
        ),
    ];
    let policies = [
        (
            "share-without-a-value",
            "{mode: Balanced, levels: [{key: zone}, {any: true}], guard: {demand: Static, staticDemand: {a: 50, b: }}}",
        ),
        (
            "label-without-a-value",
            "{mode: None, serviceSelector: {matchLabels: {a: }}}",
        ),
    ];
    let mut all = rows("TopologyDrain", &drains);
    all.extend(rows("ClusterTopologyPolicy", &policies));
    assert_eq!(agree(&all), (2, 2));
}
