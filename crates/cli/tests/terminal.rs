//! Hostile text in objects cannot control the terminal, whatever the command.

#![expect(
    clippy::unwrap_used,
    reason = "a test says what it expects by failing loudly"
)]

use std::fmt::Write as _;
use std::fs;
use std::process::{Command, Output, Stdio};

use cluster::text::is_hidden;

/// A window title, a cleared screen, a forged row, and reversed text, as escaped in JSON and YAML.
const ATTACK: &str =
    r"a\u001b]0;owned\u0007\u001b[2J\n  node   6.6.6.6:8080   forged\r\u202edesrever\u2028\u009b2J";

/// A shop with hostile text in all objects.
fn cluster() -> String {
    let mut text = String::new();
    for name in ["n1", "n2"] {
        let _written = write!(
            text,
            "kind: Node\napiVersion: v1\nmetadata:\n  name: {name}\n  labels:\n    topology.kubernetes.io/zone: a\n    \
             example.com/rack: \"{ATTACK}\"\n    \"{ATTACK}\": b\n---\n"
        );
    }
    text + &format!(
        "kind: Service\napiVersion: v1\nmetadata:\n  name: cart\n  namespace: shop\n  annotations:\n    \
         topology.ipvs-topo.io/weights: \"zone=80,*=20\"\n\
         spec:\n  clusterIP: 10.96.0.10\n  ports: [{{name: http, port: 80}}, {{name: \"{ATTACK}\", port: 81}}]\n---\n\
         kind: Service\napiVersion: v1\nmetadata:\n  name: till\n  namespace: shop\n  annotations:\n    \
         topology.ipvs-topo.io/weights: \"{ATTACK}\"\n\
         spec:\n  clusterIP: 10.96.0.11\n  ports: [{{port: 80}}]\n---\n\
         kind: EndpointSlice\napiVersion: discovery.k8s.io/v1\n\
         metadata: {{name: cart-1, namespace: shop, labels: {{kubernetes.io/service-name: cart}}}}\n\
         addressType: IPv4\nports: [{{name: http, port: 8080}}, {{name: \"{ATTACK}\", port: 8081}}]\nendpoints:\n\
         - {{addresses: [10.244.1.2], nodeName: n1, zone: \"{ATTACK}\"}}\n\
         - {{addresses: [10.244.2.2], nodeName: \"{ATTACK}\", zone: b, hints: {{forZones: [{{name: \"{ATTACK}\"}}]}}}}\n"
    )
}

fn run(arguments: &[&str], cluster: &str) -> Output {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cluster.yaml");
    fs::write(&path, cluster).unwrap();
    Command::new(env!("CARGO_BIN_EXE_ipvs-topo"))
        .args(arguments)
        .arg("--cluster")
        .arg(path)
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

#[track_caller]
fn harmless(bytes: &[u8]) {
    let text = std::str::from_utf8(bytes).unwrap();
    let hidden = text.chars().find(|one| is_hidden(*one) && *one != '\n');
    assert_eq!(hidden, None, "{text}");
    for line in text.lines() {
        assert!(!line.trim_start().starts_with("node   6.6.6.6"), "{text}");
    }
}

#[test]
fn a_zone_with_control_characters_is_refused_with_a_warning_and_never_shown() {
    let commands: [&[&str]; 10] = [
        &["render", "--node", "n1"],
        &["render", "--node", "n1", "-o", "save"],
        &["render", "--node", "n1", "-o", "json"],
        &["explain", "shop/cart", "--node", "n1"],
        &["explain", "shop/cart", "--node", "n1", "-o", "json"],
        &["locate", "10.244.1.2"],
        &["locate", "10.244.1.2", "-o", "json"],
        &["simulate"],
        &["simulate", "-o", "json"],
        &["simulate", "-o", "html"],
    ];
    for command in commands {
        let output = run(command, &cluster());
        assert_eq!(output.status.code(), Some(0), "{command:?}");
        assert!(!output.stdout.is_empty(), "{command:?}");
        harmless(&output.stdout);
        harmless(&output.stderr);
    }
    let output = run(&["render", "--node", "n1"], &cluster());
    let warnings = String::from_utf8(output.stderr).unwrap();
    let refused = "endpoints[0].zone: `a\\u{1b}]0;owned\\u{7}";
    assert!(warnings.contains(refused), "{warnings}");
    // The zone comes from the Node instead.
    let table = String::from_utf8(output.stdout).unwrap();
    assert!(table.contains("10.244.1.2:8080  n1    a"), "{table}");
}

#[test]
fn a_value_of_megabytes_is_not_repeated_whole() {
    let long = "9".repeat(3_000_000);
    let bad = cluster().replace("zone=80,*=20", &long);
    let bad = bad.replace(
        "- {addresses: [10.244.1.2]",
        &format!("- {{addresses: [{long}]"),
    );
    let output = run(&["render", "--node", "n1"], &bad);
    assert!(output.stderr.len() < 20_000, "{}", output.stderr.len());
    let output = run(&["render", "--node", "n1", "-o", "json"], &bad);
    assert!(output.stdout.len() < 40_000, "{}", output.stdout.len());
}
