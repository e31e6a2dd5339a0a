//! Invalid input is refused as a whole, with its object and field, and the next source decides. No
//! Service loses its real servers.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test says what it expects by failing loudly"
)]

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

/// The policy that decides if the input under test is refused.
const FALLBACK: &str = "
---
apiVersion: topology.ipvs-topo.io/v1alpha1
kind: ClusterTopologyPolicy
metadata: {name: fallback, creationTimestamp: '2026-11-22T08:00:00Z'}
spec: {mode: Balanced, levels: [{key: zone}, {any: true}]}
";

fn too_many() -> String {
    let keys: Vec<String> = (0..17).map(|one| format!("example.com/l{one}")).collect();
    keys.join(",")
}

/// The JSON of `render` for the shop's cart on n1, with these annotations and objects.
fn render(annotations: &str, objects: &str) -> Value {
    let shop = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../manifests/examples/shop");
    let read = |name: &str| fs::read_to_string(shop.join(name)).unwrap();
    let input = format!(
        "{}---\n{}{FALLBACK}---\napiVersion: v1\nkind: Service\nmetadata: {{name: cart, namespace: shop, annotations: {{{annotations}}}}}\n\
         spec: {{clusterIP: 10.96.0.10, clusterIPs: [10.96.0.10], ports: [{{name: http, port: 80}}]}}\n{objects}",
        read("nodes.yaml"),
        read("endpointslice.yaml"),
    );
    let mut child = Command::new(env!("CARGO_BIN_EXE_ipvs-topo"))
        .args(["render", "--cluster", "-", "--node", "n1", "-o", "json"])
        .args(["--now", "2026-11-22T09:00:00Z"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(input.as_bytes()).unwrap();
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{input}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Checks that there is one warning with this code and field, and a remedy.
#[track_caller]
fn warned(view: &Value, code: &str, field: &str) {
    let warnings = view["warnings"].as_array().unwrap();
    let [warning] = warnings.as_slice() else {
        panic!("{warnings:#?}")
    };
    assert_eq!(
        (&warning["code"], &warning["field"]),
        (&code.into(), &field.into()),
        "{warning}"
    );
    assert!(
        warning["remedy"]
            .as_str()
            .is_some_and(|remedy| !remedy.is_empty()),
        "{warning}"
    );
    assert!(warning["line"].as_u64().is_some(), "{warning}");
}

/// The same, and also checks that the fallback decides and serves.
#[track_caller]
fn refused(view: &Value, code: &str, field: &str) {
    warned(view, code, field);
    served(view, "clusterDefault", "balanced");
}

#[track_caller]
fn served(view: &Value, source: &str, mode: &str) {
    let server = view.pointer("/virtualServers/0").unwrap();
    let policy = &server["policy"];
    assert_eq!(
        (&policy["source"], &policy["mode"]),
        (&source.into(), &mode.into()),
        "{server:#}"
    );
    let mut weights = server["realServers"].as_array().unwrap().iter();
    assert!(
        weights.any(|real| real["weight"].as_u64() > Some(0)),
        "{server:#}"
    );
}

#[test]
fn an_invalid_annotation_is_ignored_alone_and_opens_no_boundary() {
    let many = too_many();
    for (annotation, value, beside, (source, mode)) in [
        ("keys", many.as_str(), "", ("annotation", "hard")),
        ("colour", "blue", "", ("clusterDefault", "balanced")),
        (
            "weights",
            "node=10001,*=1",
            "",
            ("clusterDefault", "balanced"),
        ),
        ("keys", "*,zone", "", ("annotation", "hard")),
        ("mode", "hard", "keys: 'zone,*'", ("annotation", "hard")),
        (
            "keys",
            "zone,*",
            "weights: 'zone=1'",
            ("annotation", "weighted"),
        ),
        (
            "on-no-match",
            "drop",
            "keys: 'zone,*'",
            ("annotation", "prefer"),
        ),
    ] {
        let mut annotations = format!("topology.ipvs-topo.io/{annotation}: '{value}'");
        if !beside.is_empty() {
            annotations.extend([", topology.ipvs-topo.io/", beside]);
        }
        let field = format!("metadata.annotations[topology.ipvs-topo.io/{annotation}]");
        let view = render(&annotations, "");
        warned(&view, "TopologyInvalid", &field);
        let server = view.pointer("/virtualServers/0").unwrap();
        let is_unread = server["refusalCode"] == "BoundaryUnread";
        let boundary = value == "*,zone" || value == many;
        assert_eq!(is_unread, boundary, "{annotation}: {value}: {server:#}");
        if boundary {
            assert_eq!(server["realServers"], Value::Array(Vec::new()));
        } else {
            served(&view, source, mode);
        }
    }
}

/// A policy with the highest priority.
fn policy(kind: &str, namespace: &str, spec: &str) -> String {
    format!(
        "---\napiVersion: topology.ipvs-topo.io/v1alpha1\nkind: {kind}\nmetadata: {{name: p{namespace}}}\nspec: {{priority: 9, {spec}}}\n"
    )
}

#[test]
fn invalid_policies_are_ignored_and_the_next_source_decides() {
    let many = too_many();
    let keys: Vec<String> = many
        .split(',')
        .map(|key| format!("{{key: {key}}}"))
        .collect();
    let many = format!("mode: Hard, levels: [{}]", keys.join(","));
    for (spec, field) in [
        (many.as_str(), "spec.levels"),
        (
            "mode: Hard, colour: blue, levels: [{key: zone}]",
            "spec.colour",
        ),
        (
            "mode: Weighted, levels: [{key: zone, weight: 10001}, {any: true, weight: 1}]",
            "spec.levels[0].weight",
        ),
        (
            "mode: Prefer, levels: [{any: true}, {key: zone}]",
            "spec.levels",
        ),
        (
            "mode: Hard, levels: [{key: zone}, {any: true}]",
            "spec.levels",
        ),
    ] {
        let view = render("", &policy("ClusterTopologyPolicy", "", spec));
        refused(&view, "PolicyInvalid", field);
    }
    for (spec, field) in [
        (
            "mode: Hard, enforcement: Override, levels: [{key: zone}]",
            "spec.enforcement",
        ),
        (
            "mode: Hard, namespaceSelector: {matchLabels: {a: b}}, levels: [{key: zone}]",
            "spec.namespaceSelector",
        ),
    ] {
        let view = render("", &policy("TopologyPolicy", ", namespace: shop", spec));
        refused(&view, "PolicyInvalid", field);
    }
    let idle = "mode: Hard, serviceSelector: {matchLabels: {app: web}}, levels: [{key: zone}]";
    let view = render("", &policy("ClusterTopologyPolicy", "", idle));
    refused(&view, "PolicyIdle", "spec.serviceSelector");
}

fn drain(zones: &str, ends: &str) -> String {
    format!(
        "---\napiVersion: topology.ipvs-topo.io/v1alpha1\nkind: TopologyDrain\nmetadata: {{name: d}}\n\
         spec: {{match: {{key: zone, values: [{zones}]}}, expiresAt: '{ends}'}}\n"
    )
}

#[test]
fn invalid_drains_drain_nothing() {
    for (zones, ends, code, field) in [
        ("a", "2026-11-22T08:30:00Z", "DrainEnded", "spec.expiresAt"),
        (
            "a",
            "2026-12-22T10:00:00Z",
            "DrainInvalid",
            "spec.expiresAt",
        ),
        (
            "x",
            "2026-11-22T10:00:00Z",
            "DrainIdle",
            "spec.match.values",
        ),
    ] {
        refused(&render("", &drain(zones, ends)), code, field);
    }
    let all = render("", &drain("a, b, c", "2026-11-22T10:00:00Z"));
    served(&all, "clusterDefault", "balanced");
    assert_eq!(all["virtualServers"][0]["notes"][0]["code"], "DrainIgnored");
}

#[test]
fn annotations_beyond_owner_limits_are_clipped_or_ignored() {
    let limits = |limits: &str| {
        let spec = format!(
            "mode: Prefer, levels: [{{key: zone}}, {{any: true}}], ownerLimits: {{{limits}}}"
        );
        policy("ClusterTopologyPolicy", "", &spec)
    };
    let annotations =
        "topology.ipvs-topo.io/weights: 'zone=80,*=20', topology.ipvs-topo.io/max-overload: '5'";
    let clipped = render(annotations, &limits("minMaxOverloadPercent: 20"));
    served(&clipped, "annotation", "weighted");
    assert_eq!(clipped["virtualServers"][0]["notes"][0]["code"], "Clipped");
    let refused = render(annotations, &limits("allowedModes: [Prefer]"));
    served(&refused, "clusterDefault", "prefer");
    assert_eq!(
        refused["virtualServers"][0]["notes"][0]["code"],
        "NotAllowed"
    );
}

/// Kubelet writes the addresses of its own Node.
#[test]
fn d13_a_node_that_claims_the_cluster_ips_of_others_removes_no_service() {
    let range = "---\napiVersion: networking.k8s.io/v1\nkind: ServiceCIDR\nmetadata: {name: kubernetes}\n\
                 spec: {cidrs: [10.96.0.0/12]}\n";
    let api = "---\napiVersion: v1\nkind: Service\nmetadata: {name: kubernetes, namespace: default}\n\
               spec: {clusterIP: 10.96.0.1, ports: [{port: 443}]}\n";
    let node = |name: &str| {
        format!(
            "---\napiVersion: v1\nkind: Node\nmetadata: {{name: {name}}}\nstatus: {{addresses: [{{type: InternalIP, \
             address: 10.96.0.1}}, {{type: InternalIP, address: 10.96.0.10}}]}}\n"
        )
    };
    let honest = render("", &format!("{range}{api}"));
    assert_eq!(honest["virtualServers"].as_array().unwrap().len(), 2);
    let attacked = render("", &format!("{range}{api}{}", node("zz")));
    assert_eq!(attacked["virtualServers"], honest["virtualServers"]);
    let warnings = attacked["warnings"].as_array().unwrap();
    let claim = warnings
        .iter()
        .find(|warning| warning["code"] == "NodeClaim");
    assert_eq!(claim.unwrap()["object"], "Node zz", "{warnings:?}");
    // Without a range the agent cannot know which of the two is right.
    let unknown = render("", &format!("{api}{}", node("zz")));
    assert_eq!(unknown["virtualServers"].as_array().unwrap().len(), 0);
}

/// An algorithm that is quadratic in the number of ports takes many minutes here.
#[test]
fn d13_a_service_of_20_000_ports_with_slow_start_is_rendered_within_a_minute() {
    use std::fmt::Write as _;
    let (mut service, mut slice) = (String::new(), String::new());
    for port in 1..=20_000 {
        write!(service, "{{name: p{port}, port: {port}}},").unwrap();
        write!(slice, "{{name: p{port}, port: {port}}},").unwrap();
    }
    let input = format!(
        "apiVersion: v1\nkind: Node\nmetadata: {{name: n1, labels: {{topology.kubernetes.io/zone: a}}}}\n---\n\
         apiVersion: v1\nkind: Service\nmetadata: {{name: wide, namespace: shop, annotations: \
         {{topology.ipvs-topo.io/weights: 'zone=80,*=20', topology.ipvs-topo.io/slow-start: '60'}}}}\n\
         spec: {{clusterIP: 10.96.0.10, ports: [{service}]}}\n---\n\
         apiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\naddressType: IPv4\n\
         metadata: {{name: wide-1, namespace: shop, labels: {{kubernetes.io/service-name: wide}}}}\n\
         ports: [{slice}]\nendpoints: [{{addresses: [10.244.1.1], nodeName: n1}}]\n"
    );
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cluster.yaml");
    fs::write(&path, input).unwrap();
    let output = Command::new("timeout")
        .args(["60", env!("CARGO_BIN_EXE_ipvs-topo")])
        .args(["render", "-o", "save", "--node", "n1", "--cluster"])
        .arg(&path)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let servers = output.stdout.split(|byte| *byte == b'\n');
    assert_eq!(
        servers.filter(|line| line.starts_with(b"-A")).count(),
        20_000
    );
    assert_eq!(output.stderr, b"", "no warning expected");
}

/// Exit code, output and errors of a command on a copy of the shop with annotations of the cart.
fn on_shop(annotations: &str, arguments: &[&str]) -> (Option<i32>, String, String) {
    let shop = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../manifests/examples/shop");
    let folder = tempfile::tempdir().unwrap();
    for name in ["nodes.yaml", "endpointslice.yaml"] {
        fs::copy(shop.join(name), folder.path().join(name)).unwrap();
    }
    let cart = format!(
        "apiVersion: v1\nkind: Service\nmetadata: {{name: cart, namespace: shop, annotations: {{{annotations}}}}}\n\
         spec: {{clusterIP: 10.96.0.10, clusterIPs: [10.96.0.10], ports: [{{name: http, port: 80}}]}}\n"
    );
    fs::write(folder.path().join("services.yaml"), cart).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_ipvs-topo"))
        .args(arguments)
        .arg("--cluster")
        .arg(folder.path())
        .output()
        .unwrap();
    let [text, errors] = [output.stdout, output.stderr].map(|out| String::from_utf8(out).unwrap());
    (output.status.code(), text, errors)
}

#[test]
fn d13_every_command_checks_labels_in_annotations_as_the_agents_do() {
    let hard = "topology.ipvs-topo.io/keys: 'example.com/x'";
    for command in [
        &["render", "--node", "n1"][..],
        &["explain", "shop/cart", "--node", "n1"],
        &["simulate"],
    ] {
        let restricted = [command, &["--annotation-label-keys", "example.com/rack"]].concat();
        let (code, text, errors) = on_shop(hard, &restricted);
        assert_eq!(code, Some(0), "{errors}");
        let said = text + &errors;
        assert!(
            said.contains("may not use the label example.com/x here"),
            "{said}"
        );
        let (_, text, errors) = on_shop(hard, command);
        assert!(!(text + &errors).contains("may not use"));
    }
    let set = [
        "simulate",
        "--annotation-label-keys",
        "example.com/rack",
        "--set",
        "shop/cart:keys=example.com/x,*",
    ];
    let (code, _, errors) = on_shop("", &set);
    assert_eq!(code, Some(2), "{errors}");
    assert!(
        errors.contains("may not use the label example.com/x"),
        "{errors}"
    );
}
