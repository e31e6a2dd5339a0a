//! `explain` of the examples, as a table for people and as JSON.

#![expect(
    clippy::unwrap_used,
    reason = "a test says what it expects by failing loudly"
)]

use std::path::Path;
use std::process::{Command, Stdio};

fn explain(example: &str, node: &str, service: &str, more: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ipvs-topo"));
    command
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."))
        .args(["explain", service, "--node", node, "--cluster"])
        .arg(Path::new("manifests/examples").join(example))
        .args(more);
    let output = command
        .env("COLUMNS", "80")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{errors}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn every_example_in_80_columns() {
    for (example, node, service) in [
        ("shop", "n1", "shop/cart"),
        ("shop", "n3", "shop/cart"),
        ("prefer", "n1", "shop/catalog"),
        ("hard-rack", "n4", "shop/cache"),
        ("hints", "n4", "shop/orders"),
        ("topology-keys", "n4", "infra/logs"),
        ("internal-local", "n1", "infra/node-metrics"),
        ("external-local", "n4", "shop/storefront"),
        ("session-affinity", "n1", "shop/login"),
        ("dual-stack", "n4", "shop/web"),
        ("list", "n1", "shop/basket"),
        ("udp-sctp", "n1", "kube-system/dns"),
        ("policy-balanced", "n1", "shop/pricing"),
        ("policy-default", "n1", "shop/checkout"),
        ("policy-edge", "n1", "shop/till"),
        ("policy-thresholds", "n1", "shop/search"),
    ] {
        let text = explain(example, node, service, &[]);
        let widest = text.lines().map(|line| line.chars().count()).max();
        assert!(widest <= Some(80), "{example}: {widest:?}\n{text}");
        insta::assert_snapshot!(format!("explain {example} {node}"), text);
    }
}

#[test]
fn a_warning_is_printed_once_for_all_ports() {
    let text = explain("prefer", "n9", "shop/catalog", &[]);
    assert_eq!(text.matches("shop/catalog:").count(), 2, "{text}");
    assert_eq!(text.matches("there is no Node n9").count(), 1, "{text}");
}

#[test]
fn a_drain_is_explained_as_of_the_given_time() {
    for (moment, now) in [
        ("ramping", "2026-11-22T08:00:30Z"),
        ("drained", "2026-11-22T09:00:00Z"),
        ("ended", "2026-11-22T10:00:00Z"),
    ] {
        let text = explain("drain", "n3", "shop/web", &["--now", now]);
        insta::assert_snapshot!(format!("explain drain n3 {moment}"), text);
    }
}

/// A label with the name of an alias, which only `topologyKeys` can contain.
const LABEL_ZONE: &str = "
apiVersion: v1
kind: Node
metadata: {name: n1, labels: {topology.kubernetes.io/zone: a}}
---
apiVersion: v1
kind: Node
metadata: {name: n2, labels: {topology.kubernetes.io/zone: a, zone: blue}}
---
apiVersion: v1
kind: Service
metadata: {name: s, namespace: t}
spec: {clusterIP: 10.96.0.1, ports: [{name: http, port: 80}], topologyKeys: [zone]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: s-1, namespace: t, labels: {kubernetes.io/service-name: s}}
addressType: IPv4
ports: [{name: http, port: 8080}]
endpoints: [{addresses: [10.244.0.1], nodeName: n2}]
";

#[test]
fn a_label_named_zone_is_not_the_zone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cluster.yaml");
    std::fs::write(&path, LABEL_ZONE).unwrap();
    let path = path.to_str().unwrap();
    for node in ["n1", "n2"] {
        let text = explain(path, node, "t/s", &[]);
        insta::assert_snapshot!(format!("explain label zone {node}"), text);
    }
}

#[test]
fn json_has_the_same_content_as_the_text() {
    let json = explain("shop", "n1", "shop/cart", &["-o", "json"]);
    let view: serde_json::Value = serde_json::from_str(&json).unwrap();
    let words = explain("shop", "n1", "shop/cart", &[])
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    let one = &view[0];
    assert_eq!(one["stages"].as_array().unwrap().len(), 12);
    let stages = one["stages"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|stage| stage["lines"].as_array().unwrap());
    let changes = one["whatIf"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|change| [&change["change"], &change["effect"]]);
    let alone = [&one["decidedBy"]["words"], &one["schedulerNote"]];
    for text in stages.chain(changes).chain(alone) {
        let text = text.as_str().unwrap();
        assert!(words.contains(text), "{text:?} is missing in the text");
    }
    assert_eq!(one["node"]["labels"]["example.com/rack"], "a1");
}
