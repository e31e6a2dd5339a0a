//! Objects in YAML, and the virtual servers that `render` prints for them.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::process::{Command, Stdio};

/// The real servers of each virtual server, both as `ipvsadm` writes them, without weights.
pub(crate) type Servers = BTreeMap<String, BTreeSet<String>>;

/// The Node n1, whose view is rendered, and n2.
pub(crate) const NODES: &str = "
---
{apiVersion: v1, kind: Node, metadata: {name: n1, labels: {topology.kubernetes.io/zone: a}}, spec: {podCIDRs: [10.244.1.0/24]}, status: {addresses: [{type: InternalIP, address: 192.0.2.1}, {type: InternalIP, address: '2001:db8::1'}]}}
---
{apiVersion: v1, kind: Node, metadata: {name: n2, labels: {topology.kubernetes.io/zone: b}}, status: {addresses: [{type: InternalIP, address: 192.0.2.2}, {type: InternalIP, address: '2001:db8::2'}]}}
";

/// The Service `t/NAME`; `spec` in flow style without braces.
pub(crate) fn service(name: &str, spec: &str) -> String {
    format!(
        "---\n{{apiVersion: v1, kind: Service, metadata: {{name: {name}, namespace: t}}, spec: {{{spec}}}}}\n"
    )
}

/// A slice of `t/NAME` with the port `PORT/PROTOCOL`. An endpoint is `ADDRESS@NODE`, and has behind
/// it `!` if it is not ready, `~` if it terminates and serves, `x` if it terminates and does not.
pub(crate) fn slice(name: &str, port: &str, endpoints: &[&str]) -> String {
    let v6 = endpoints.iter().any(|endpoint| endpoint.contains("::"));
    let (family, number) = if v6 { ("IPv6", 6) } else { ("IPv4", 4) };
    let (port, protocol) = port.split_once('/').unwrap();
    let endpoints: Vec<String> = endpoints.iter().copied().map(endpoint).collect();
    format!(
        "---\n{{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {{name: {name}-{number}, namespace: t, labels: {{kubernetes.io/service-name: {name}}}}}, addressType: {family}, ports: [{{name: '', port: {port}, protocol: {protocol}}}], endpoints: [{}]}}\n",
        endpoints.join(", ")
    )
}

fn endpoint(text: &str) -> String {
    let (rest, conditions) = match text.trim_end_matches(['!', '~', 'x']) {
        rest if text.ends_with('!') => (rest, "ready: false, serving: false, terminating: false"),
        rest if text.ends_with('~') => (rest, "ready: false, serving: true, terminating: true"),
        rest if text.ends_with('x') => (rest, "ready: false, serving: false, terminating: true"),
        rest => (rest, "ready: true, serving: true, terminating: false"),
    };
    let (address, node) = rest.split_once('@').unwrap();
    format!("{{addresses: ['{address}'], nodeName: {node}, conditions: {{{conditions}}}}}")
}

/// What n1 programs for these objects and the two Nodes, and its warnings.
pub(crate) fn rendered(objects: &[String]) -> (Servers, String) {
    rendered_with(NODES, objects, &[])
}

/// The same with other Nodes and options.
pub(crate) fn rendered_with(
    nodes: &str,
    objects: &[String],
    options: &[&str],
) -> (Servers, String) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_ipvs-topo"))
        .args(["render", "--cluster=-", "--node=n1", "-o=save"])
        .args(options)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let input = [nodes, &objects.concat()].concat();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(input.as_bytes()).unwrap();
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    let [out, err] = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
    assert!(output.status.success(), "{err}");
    (servers(&out), err)
}

/// The lines of `ipvsadm-save`; the number of a mark is left out.
fn servers(save: &str) -> Servers {
    let mut servers = Servers::new();
    for line in save.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let [verb, flag, address, rest @ ..] = words.as_slice() else {
            unreachable!("not a line of ipvsadm-save: {line}");
        };
        let key = match *flag {
            "-f" => "-f".to_owned(),
            flag => format!("{flag} {address}"),
        };
        let reals = servers.entry(key).or_default();
        if *verb == "-a" {
            let ["-r", real, "-m", "-w", _] = rest else {
                unreachable!("not a masqueraded real server: {line}");
            };
            reals.insert((*real).to_owned());
        }
    }
    servers
}

/// The expected table.
pub(crate) fn table(rows: &[(&str, &[&str])]) -> Servers {
    let row = |(key, reals): &(&str, &[&str])| {
        let reals = reals.iter().map(|real| (*real).to_owned());
        ((*key).to_owned(), reals.collect())
    };
    rows.iter().map(row).collect()
}
