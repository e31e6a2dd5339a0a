//! The three ways of `docs/dns.md` to answer pods, each beside a real `CoreDNS`.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::time::Duration;

use serde_json::Value;

use crate::cluster::{
    NODES, Namespace, answer_within, kubectl, kubectl_tries, kubectl_with, on_node, real_servers,
    variable, wait_for,
};
use crate::web;

#[path = "cluster_dns/alone.rs"]
mod alone;

const SYSTEM: &str = "--namespace=kube-system";

/// The address of cluster DNS.
const CLUSTER_DNS: &str = "10.96.0.10";

/// A name that all servers answer.
const NAME: &str = "kubernetes.default.svc.cluster.local";

/// The headless Service with an endpoint on each node.
const CART: &str = "cart.shared.svc.cluster.local";

/// The TTLs of answers, by which a client knows the server.
const OURS: &str = "5";
const THEIRS: &str = "30";

/// The time until the first query of a client: its own start keeps an emulated node busy.
const CLIENT_DELAY: Duration = Duration::from_secs(15);

/// The node with `CoreDNS`, if it runs once.
const COREDNS_NODE: &str = "n3";

const DOCUMENT: &str = include_str!("../../../../docs/dns.md");
const COREDNS: &str = include_str!("../../../../xtask/src/conformance/coredns.yaml");

/// Objects of the cluster. They are deleted when dropped, because other tests expect only the agent's processes on a node.
struct Objects {
    yaml: String,
    source: [&'static str; 2],
}

impl Objects {
    fn apply(yaml: String) -> Self {
        Self::from_source(yaml, ["-f", "-"])
    }

    fn apply_folder(path: &'static str) -> Self {
        Self::from_source(String::new(), ["-k", path])
    }

    fn from_source(yaml: String, source: [&'static str; 2]) -> Self {
        let objects = Self { yaml, source };
        kubectl_with(&objects.yaml, &[&["apply"][..], &source].concat());
        objects
    }
}

impl Drop for Objects {
    fn drop(&mut self) {
        let now = [
            "--cascade=foreground",
            "--ignore-not-found",
            "--timeout=300s",
        ];
        let delete = [&["delete"][..], &self.source, &now].concat();
        drop(kubectl_tries(&self.yaml, &delete));
    }
}

/// Starts `CoreDNS` on [`COREDNS_NODE`].
fn start_coredns() -> Objects {
    let coredns = Objects::apply(coredns_on(COREDNS_NODE, COREDNS));
    wait_for_rollout("deployment/coredns");
    coredns
}

/// These objects with the image and the node of `CoreDNS`, and without its cache: cached answers would have smaller TTLs.
fn coredns_on(node: &str, objects: &str) -> String {
    let place = "dnsPolicy: Default";
    objects
        .replace("        cache 30\n", "")
        .replace("DNS_IMAGE", &variable("LAB_DNS_IMAGE"))
        .replace(place, &format!("{place}\n      nodeName: {node}"))
}

fn wait_for_rollout(what: &str) {
    kubectl(&[SYSTEM, "rollout", "status", what, "--timeout=600s"]);
}

/// The lines of a Corefile below a heading of the document.
fn lines_below(heading: &str) -> &'static str {
    let (_, rest) = DOCUMENT.split_once(heading).unwrap();
    let (_, rest) = rest.split_once("```text\n").unwrap();
    rest.split_once("\n```").unwrap().0
}

/// Replaces what must be there.
fn replaced(text: &str, from: &str, to: &str) -> String {
    assert!(text.contains(from), "{from} is not in {text}");
    text.replace(from, to)
}

/// Lines for a Corefile that begins in column `columns` of a YAML file.
fn indented(lines: &str, columns: usize) -> String {
    let lines = lines.lines().map(|line| format!("{:columns$}{line}\n", ""));
    lines.collect()
}

/// Creates the Service [`CART`] with these annotations.
fn create_cart(annotations: &str) -> Objects {
    let namespace = web::start();
    let all = ["label", "pods", "--selector=app=web", "cart=full"];
    namespace.kubectl(&[&all[..], &["--overwrite"]].concat());
    Objects::apply(format!(
        "apiVersion: v1
kind: Service
metadata:
  name: cart
  namespace: {}
  annotations: {{{annotations}}}
spec:
  clusterIP: None
  selector: {{app: web, cart: full}}
  ports:
  - port: 8080
",
        namespace.0
    ))
}

/// The addresses of pods with these labels, by their nodes.
fn addresses(namespace: &str, labels: &str) -> BTreeMap<String, String> {
    let selector = format!("--selector={labels}");
    let fields = "-o=jsonpath={range .items[*]}{.spec.nodeName} {.status.podIP}{\"\\n\"}{end}";
    let listed = kubectl(&[namespace, "get", "pods", &selector, fields]);
    let pods = listed.lines().filter_map(|line| line.split_once(' '));
    pods.map(|(node, address)| (node.to_owned(), address.to_owned()))
        .collect()
}

/// Waits until a program on `node` gets the endpoints of [`CART`] on these nodes from `server`.
fn wait_until_cart_is(expected: &[&str], node: &str, server: &str) {
    let pods = addresses("--namespace=shared", "app=web");
    let expected = expected
        .iter()
        .map(|node| pods.get(*node).cloned().unwrap());
    let expected: BTreeSet<_> = expected.collect();
    let mut last = BTreeSet::new();
    let as_expected = answer_within(Duration::from_secs(120), || {
        last = cart_from(node, server);
        (last == expected).then_some(())
    });
    assert!(as_expected.is_some(), "{node}: {last:?} for {expected:?}");
}

/// The addresses of [`CART`] that a program on `node` gets from `server`.
fn cart_from(node: &str, server: &str) -> BTreeSet<String> {
    let answer = on_node(node, &format!("nslookup -type=a {CART} {server} || true"));
    let records = answer.lines().skip_while(|line| !line.starts_with("Name:"));
    let addresses = records.filter_map(|line| line.strip_prefix("Address:"));
    addresses.map(|address| address.trim().to_owned()).collect()
}

/// Waits until every node's kernel sends queries for [`CLUSTER_DNS`] to these addresses only.
fn wait_until_serving(expected: impl Fn(&str) -> BTreeSet<String>) {
    for node in NODES {
        for protocol in ["-u", "-t"] {
            wait_for("a node asks other servers", || {
                (serving(node, protocol) == expected(node)).then_some(())
            });
        }
    }
}

/// The addresses of the servers that get queries in the kernel of `node`.
fn serving(node: &str, protocol: &str) -> BTreeSet<String> {
    let servers = real_servers(node, &format!("{protocol} {CLUSTER_DNS}:53"));
    let serving = servers.into_iter().filter(|(_, weight)| *weight > 0);
    serving
        .map(|(address, _)| address.trim_end_matches(":53").to_owned())
        .collect()
}

/// The DNS servers of this project, one on each node, and their clients.
struct DnsServers {
    /// Where clients ask.
    address: &'static str,
    /// The URL of a server's metrics on its node, by the address of its pod.
    metrics: fn(&str) -> String,
    /// Milliseconds after which clients send a query again.
    retry: &'static str,
    clients: Namespace,
}

impl DnsServers {
    /// Starts a client on a node.
    fn start_client(&self, node: &str, queries: u32) -> String {
        let name = format!("client-{node}-{queries}");
        let image = format!(
            "registry.invalid/ipvs-topo/guest:{}",
            env!("CARGO_PKG_VERSION")
        );
        let here = format!(r#"{{"spec": {{"nodeName": "{node}"}}}}"#);
        let server = format!("{}:53", self.address);
        let queries = queries.to_string();
        let run = ["run", &name, "--restart=Never", "--image", &image];
        let place = ["--overrides", &here, "--image-pull-policy=Never"];
        let program = ["--command", "--", "/usr/bin/guest", "dns"];
        let target = ["--server", &server, "--name", NAME];
        let delay = CLIENT_DELAY.as_secs().to_string();
        // An emulated node has one processor, and needs most of it for its pods and their probes.
        let load = ["--delay", &delay, "--rate", "20", "--queries", &queries];
        let retry = ["--retry", self.retry];
        self.clients
            .kubectl(&[&run[..], &place, &program, &target, &load, &retry].concat());
        name
    }

    fn wait_for_phase(&self, client: &str, phases: &[&str]) {
        wait_for("a client does not go on", || {
            let phase = ["get", "pod", client, "-o=jsonpath={.status.phase}"];
            let phase = self.clients.kubectl(&phase);
            phases.contains(&&*phase).then_some(())
        });
    }

    /// The report of a client, after its last query; it is deleted then.
    fn report(&self, client: &str) -> Value {
        self.wait_for_phase(client, &["Succeeded", "Failed"]);
        let said = self.clients.kubectl(&["logs", client]);
        self.clients.kubectl(&["delete", "pod", client]);
        serde_json::from_str(said.trim()).unwrap_or_else(|_| panic!("{said}"))
    }

    /// Asserts that a client on `node` gets answers from the server there, and from `CoreDNS` only if `also_coredns`.
    fn answers_its_node(&self, node: &str, also_coredns: bool) {
        const QUERIES: u32 = 100;
        let before = self.queries();
        let client = self.start_client(node, QUERIES);
        let report = self.report(&client);
        let after = self.queries();
        let [ours, theirs] = answers(&report);
        assert_eq!(ours + theirs, u64::from(QUERIES), "{report}");
        assert_eq!(theirs > 0, also_coredns, "{node}: {report}");
        assert!(ours > 0, "{node}: {report}");
        for other in NODES {
            let asked = [&after, &before].map(|counts| counts.get(other).copied().unwrap());
            let asked = asked[0] - asked[1];
            assert_eq!(asked >= ours, other == node, "{other} for {node}: {asked}");
            assert!(other == node || asked == 0, "{other} for {node}: {asked}");
        }
    }

    /// The queries that each server has answered.
    fn queries(&self) -> BTreeMap<String, u64> {
        let servers = addresses(SYSTEM, "app.kubernetes.io/name=ipvs-topo-dns");
        let counts = servers.into_iter().map(|(node, address)| {
            let scrape = format!("wget -qO- {}", (self.metrics)(&address));
            let metrics = on_node(&node, &scrape);
            let series = metrics
                .lines()
                .filter(|line| line.starts_with("ipvs_topo_dns_requests_total{"));
            let values = series.filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok());
            (node, values.sum())
        });
        counts.collect()
    }

    /// Kills the server of a node under a client; returns the client's report, in which every query has an answer, and
    /// some have one of `CoreDNS`.
    fn report_of_a_kill(&self, node: &str) -> Value {
        const QUERIES: u32 = 600;
        let client = self.start_client(node, QUERIES);
        self.wait_for_phase(&client, &["Running"]);
        std::thread::sleep(CLIENT_DELAY + Duration::from_secs(5));
        on_node(
            node,
            "for id in $(pidof ipvs-topo); do \
             if tr '\\0' ' ' < /proc/$id/cmdline | grep -q ' dns '; then kill -9 $id; fi; done",
        );
        let report = self.report(&client);
        print_outage(&report);
        assert_eq!(number(&report, "/queries"), u64::from(QUERIES), "{report}");
        let answers = answers(&report);
        assert_eq!(answers.iter().sum::<u64>(), u64::from(QUERIES), "{report}");
        assert!(answers.iter().all(|count| *count > 0), "{report}");
        report
    }
}

/// How many answers a report has of this project and of `CoreDNS`.
fn answers(report: &Value) -> [u64; 2] {
    [OURS, THEIRS].map(|ttl| number(report, &format!("/answers/{ttl}")))
}

/// Prints how many queries needed another send, and the whole report.
fn print_outage(report: &Value) {
    let text = format!(
        "{} of {} queries were sent again, at most {} times",
        number(report, "/retried"),
        number(report, "/queries"),
        number(report, "/mostSends").saturating_sub(1),
    );
    let mut stderr = std::io::stderr().lock();
    writeln!(stderr, "    {text}: {report}").unwrap();
}

/// A number in a report, by the names of its fields; 0 if it is absent.
fn number(report: &Value, path: &str) -> u64 {
    let value = report.pointer(path).and_then(Value::as_u64);
    value.unwrap_or_default()
}

/// Gives nodes the resolver that a DNS server starts with. Nothing asks it.
fn give_nodes_a_resolver() {
    for node in NODES {
        on_node(node, "echo nameserver 192.0.2.1 > /etc/resolv.conf");
    }
}
