//! A cluster of every kind of name, and commands that read it without a server.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use tempfile::TempDir;

/// Nodes in the zones a, a and b. The nodes `n1` and `n2` have the pods 127.0.N.0/24, and `n3` has no pod range.
const NODES: &str = "
{apiVersion: v1, kind: Node, metadata: {name: n1, labels: {topology.kubernetes.io/zone: a}}, spec: {podCIDRs: [127.0.1.0/24]}}
---
{apiVersion: v1, kind: Node, metadata: {name: n2, labels: {topology.kubernetes.io/zone: a}}, spec: {podCIDRs: [127.0.2.0/24]}}
---
{apiVersion: v1, kind: Node, metadata: {name: n3, labels: {topology.kubernetes.io/zone: b}}, status: {addresses: [{type: InternalIP, address: 127.0.3.1}]}}
";

/// Addresses and their nodes.
type Endpoints = &'static [(&'static str, &'static str)];

/// Headless Services of the namespace `shop`: a name, annotations, more of the spec, and addresses with their nodes.
const HEADLESS: &[(&str, &str, &str, Endpoints)] = &[
    ("cart", "weights: 'node=80,zone=15,*=5'", "", SPREAD),
    ("search", "keys: 'node,zone,*'", "", SPREAD),
    ("plain", "", "", SPREAD),
    ("bounded", "keys: 'zone'", "", &[("10.244.3.30", "n3")]),
    ("local", "", ", internalTrafficPolicy: Local", SPREAD),
    (
        "hashed",
        "weights: 'zone=99,*=1', topology.ipvs-topo.io/scheduler: mh",
        "",
        SPREAD,
    ),
    (
        "both",
        "weights: 'zone=2,*=1'",
        "",
        &[
            ("10.244.1.60", "n1"),
            ("10.244.3.60", "n3"),
            ("fd00:1::60", "n1"),
            ("fd00:3::60", "n3"),
        ],
    ),
    ("down", "", "", &[]),
];

/// On each node, and a second one far away.
const SPREAD: Endpoints = &[
    ("10.244.1.10", "n1"),
    ("10.244.2.10", "n2"),
    ("10.244.3.10", "n3"),
    ("10.244.3.11", "n3"),
];

pub(crate) fn cluster() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let mut yaml = NODES.to_owned();
    for (name, annotations, spec, endpoints) in HEADLESS {
        yaml += &headless(name, annotations, spec);
        for family in ["IPv4", "IPv6"] {
            let own = endpoints.iter();
            let own = own.filter(|(address, _)| address.contains("::") == (family == "IPv6"));
            yaml += &slice(name, family, own);
        }
    }
    yaml += "---
{apiVersion: v1, kind: Service, metadata: {name: web, namespace: shop}, spec: {clusterIP: 10.96.0.10, clusterIPs: [10.96.0.10, 'fd00:96::10'], ports: [{name: http, port: 80}]}}
---
{apiVersion: v1, kind: Service, metadata: {name: away, namespace: shop}, spec: {type: ExternalName, externalName: www.example.com}}
";
    fs::write(folder.path().join("a.yaml"), yaml).unwrap();
    folder
}

fn headless(name: &str, annotations: &str, spec: &str) -> String {
    let annotations = match annotations {
        "" => String::new(),
        written => format!("topology.ipvs-topo.io/{written}"),
    };
    format!(
        "---
{{apiVersion: v1, kind: Service, metadata: {{name: {name}, namespace: shop, annotations: {{{annotations}}}}},
  spec: {{clusterIP: None, ports: [{{name: http, port: 80}}]{spec}}}}}
"
    )
}

fn slice<'e>(
    service: &str,
    family: &str,
    endpoints: impl Iterator<Item = &'e (&'e str, &'e str)>,
) -> String {
    let endpoints: Vec<String> = endpoints
        .map(|(address, node)| format!("{{addresses: ['{address}'], nodeName: {node}}}"))
        .collect();
    if endpoints.is_empty() {
        return String::new();
    }
    format!(
        "---
{{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice,
  metadata: {{name: {service}-{}, namespace: shop, labels: {{kubernetes.io/service-name: {service}, service.kubernetes.io/headless: ''}}}},
  addressType: {family}, ports: [{{name: http, port: 8080}}], endpoints: [{}]}}
",
        family.to_lowercase(),
        endpoints.join(", ")
    )
}

pub(crate) struct Output {
    pub(crate) code: Option<i32>,
    pub(crate) text: String,
    pub(crate) errors: String,
}

/// A command on a cluster, on a terminal of this width.
pub(crate) fn run_in(width: &str, cluster: &Path, words: &[&str]) -> Output {
    let output = Command::new(env!("CARGO_BIN_EXE_ipvs-topo"))
        .args(words)
        .arg("--cluster")
        .arg(cluster)
        .env("COLUMNS", width)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    Output {
        code: output.status.code(),
        text: String::from_utf8(output.stdout).unwrap(),
        errors: String::from_utf8(output.stderr).unwrap(),
    }
}

/// The JSON of a command.
pub(crate) fn json(cluster: &Path, words: &[&str]) -> serde_json::Value {
    let output = run_in("80", cluster, &[words, &["-o", "json"]].concat());
    assert_eq!(output.code, Some(0), "{words:?}: {}", output.errors);
    serde_json::from_str(&output.text).unwrap()
}
