//! The servers of `manifests/overlays/dns` answer on the cluster DNS address, each the clients of its node, and `CoreDNS`
//! when it cannot.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::cluster::{
    NODES, Namespace, install, kubectl, kubectl_tries, kubectl_with, on_node, real_servers,
    variable, wait_for,
};

const SYSTEM: &str = "--namespace=kube-system";

/// Where pods ask.
const ADDRESS: &str = "10.96.0.10:53";

/// A name that both servers answer.
const NAME: &str = "kubernetes.default.svc.cluster.local";

/// The TTLs of answers, by which a client knows the server.
const OURS: &str = "5";
const THEIRS: &str = "30";

/// The node with `CoreDNS`.
const COREDNS_NODE: &str = "n3";

const OVERLAY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../manifests/overlays/dns");
const COMPONENT: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../manifests/components/dns"
);

/// `CoreDNS` on one node and a server on every node; both are removed when dropped.
struct ClusterDns {
    coredns: String,
    namespace: Namespace,
}

impl ClusterDns {
    fn install() -> Self {
        install();
        let coredns = include_str!("../../../../xtask/src/conformance/coredns.yaml");
        let place = "dnsPolicy: Default";
        // Cached answers would have smaller TTLs.
        let coredns = coredns
            .replace("        cache 30\n", "")
            .replace("DNS_IMAGE", &variable("LAB_DNS_IMAGE"))
            .replace(place, &format!("{place}\n      nodeName: {COREDNS_NODE}"));
        let dns = Self {
            coredns,
            namespace: Namespace::new(),
        };
        for node in NODES {
            // Nodes of the lab have no resolver, and nothing asks this one.
            on_node(node, "echo nameserver 192.0.2.1 > /etc/resolv.conf");
        }
        kubectl_with(&dns.coredns, &["apply", "-f", "-"]);
        kubectl(&["apply", "-k", OVERLAY]);
        for what in ["deployment/coredns", "daemonset/ipvs-topo-dns"] {
            kubectl(&[SYSTEM, "rollout", "status", what, "--timeout=600s"]);
        }
        Self::wait_until_first();
        dns
    }

    /// Waits until every node's kernel gives queries to the endpoints on this node only.
    fn wait_until_first() {
        let servers = addresses("app.kubernetes.io/name=ipvs-topo-dns");
        let others = addresses("k8s-app=kube-dns,app.kubernetes.io/name!=ipvs-topo-dns");
        let coredns = others.get(COREDNS_NODE);
        assert_eq!((servers.len(), others.len()), (NODES.len(), 1));
        for node in NODES {
            let mut expected = Vec::from_iter(servers.get(node).cloned());
            if node == COREDNS_NODE {
                expected.extend(coredns.cloned());
            }
            expected.sort();
            for protocol in ["-u", "-t"] {
                wait_for("a node asks other servers", || {
                    (serving(node, protocol) == expected).then_some(())
                });
            }
        }
    }

    /// Starts a client on a node.
    fn start_client(&self, node: &str, rate: u32, queries: u32) -> String {
        let name = format!("client-{node}-{queries}");
        let image = format!(
            "registry.invalid/ipvs-topo/guest:{}",
            env!("CARGO_PKG_VERSION")
        );
        let here = format!(r#"{{"spec": {{"nodeName": "{node}"}}}}"#);
        let [rate, queries] = [rate, queries].map(|number| number.to_string());
        let run = ["run", &name, "--restart=Never", "--image", &image];
        let place = ["--overrides", &here, "--image-pull-policy=Never"];
        let program = ["--command", "--", "/usr/bin/guest", "dns"];
        let target = ["--server", ADDRESS, "--name", NAME];
        let load = ["--rate", &rate, "--queries", &queries];
        self.namespace
            .kubectl(&[&run[..], &place, &program, &target, &load].concat());
        name
    }

    fn wait_for_phase(&self, client: &str, phases: &[&str]) {
        wait_for("a client does not go on", || {
            let phase = ["get", "pod", client, "-o=jsonpath={.status.phase}"];
            let phase = self.namespace.kubectl(&phase);
            phases.contains(&&*phase).then_some(())
        });
    }

    /// The report of a client, after its last query.
    fn report(&self, client: &str) -> Value {
        self.wait_for_phase(client, &["Succeeded", "Failed"]);
        let said = self.namespace.kubectl(&["logs", client]);
        serde_json::from_str(said.trim()).unwrap_or_else(|_| panic!("{said}"))
    }
}

impl Drop for ClusterDns {
    fn drop(&mut self) {
        // Other tests expect only the agent's processes on a node.
        let now = [
            "--cascade=foreground",
            "--ignore-not-found",
            "--timeout=300s",
        ];
        drop(kubectl_tries(
            "",
            &[&["delete", "-k", COMPONENT][..], &now].concat(),
        ));
        let objects = ["delete", "-f", "-"];
        drop(kubectl_tries(&self.coredns, &[&objects[..], &now].concat()));
    }
}

/// The addresses of pods with these labels, by their nodes.
fn addresses(selector: &str) -> BTreeMap<String, String> {
    let selector = format!("--selector={selector}");
    let fields = "-o=jsonpath={range .items[*]}{.spec.nodeName} {.status.podIP}{\"\\n\"}{end}";
    let listed = kubectl(&[SYSTEM, "get", "pods", &selector, fields]);
    let pods = listed.lines().filter_map(|line| line.split_once(' '));
    pods.map(|(node, address)| (node.to_owned(), address.to_owned()))
        .collect()
}

/// The addresses of the servers that get queries in the kernel of `node`.
fn serving(node: &str, protocol: &str) -> Vec<String> {
    let servers = real_servers(node, &format!("{protocol} {ADDRESS}"));
    let serving = servers.into_iter().filter(|(_, weight)| *weight > 0);
    let addresses = serving.map(|(address, _)| address.trim_end_matches(":53").to_owned());
    let mut addresses: Vec<_> = addresses.collect();
    addresses.sort();
    addresses
}

/// The queries that each of our servers has answered.
fn queries_of_servers() -> BTreeMap<String, u64> {
    let servers = addresses("app.kubernetes.io/name=ipvs-topo-dns");
    let counts = servers.into_iter().map(|(node, address)| {
        let scrape = format!("wget -qO- http://{address}:9153/metrics");
        let metrics = on_node(&node, &scrape);
        let series = metrics
            .lines()
            .filter(|line| line.starts_with("ipvs_topo_dns_requests_total{"));
        let values = series.filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok());
        (node, values.sum())
    });
    counts.collect()
}

/// A number in a report, by the names of its fields; 0 if it is absent.
fn number(report: &Value, path: &str) -> u64 {
    let value = report.pointer(path).and_then(Value::as_u64);
    value.unwrap_or_default()
}

mod alone {
    use std::io::Write as _;
    use std::time::Duration;

    use serde_json::Value;

    use super::{COREDNS_NODE, ClusterDns, OURS, THEIRS, number, queries_of_servers};
    use crate::cluster::{NODES, on_node};

    /// What the client asks while a server is killed, in half a minute.
    const QUERIES: u32 = 3_000;

    #[test]
    fn queries_go_to_the_server_of_the_node_and_to_coredns_when_it_is_killed() {
        let dns = ClusterDns::install();
        for node in NODES {
            its_server_answers(&dns, node);
        }
        its_server_is_killed(&dns, "n1");
    }

    /// A client of `CoreDNS`' node gets answers from both, because both are on this node.
    fn its_server_answers(dns: &ClusterDns, node: &str) {
        let before = queries_of_servers();
        let client = dns.start_client(node, 100, 300);
        let report = dns.report(&client);
        let after = queries_of_servers();
        let [ours, theirs] = [OURS, THEIRS].map(|ttl| number(&report, &format!("/answers/{ttl}")));
        assert_eq!(ours + theirs, 300, "{report}");
        assert_eq!(theirs > 0, node == COREDNS_NODE, "{node}: {report}");
        assert!(ours > 0, "{node}: {report}");
        for other in NODES {
            let asked = [&after, &before].map(|counts| counts.get(other).copied().unwrap());
            let asked = asked[0] - asked[1];
            assert_eq!(asked >= ours, other == node, "{other} for {node}: {asked}");
            assert!(other == node || asked == 0, "{other} for {node}: {asked}");
        }
    }

    /// Every query is answered, at last by another server, until the killed one is back.
    /// The rate is one that an emulated `CoreDNS` can answer alone.
    fn its_server_is_killed(dns: &ClusterDns, node: &str) {
        let client = dns.start_client(node, 100, QUERIES);
        dns.wait_for_phase(&client, &["Running"]);
        std::thread::sleep(Duration::from_secs(5));
        on_node(
            node,
            "for id in $(pidof ipvs-topo); do \
             if tr '\\0' ' ' < /proc/$id/cmdline | grep -q ' dns '; then kill -9 $id; fi; done",
        );
        let report = dns.report(&client);
        print_outage(&report);
        assert_eq!(number(&report, "/queries"), u64::from(QUERIES), "{report}");
        let answers = [OURS, THEIRS].map(|ttl| number(&report, &format!("/answers/{ttl}")));
        assert_eq!(answers.iter().sum::<u64>(), u64::from(QUERIES), "{report}");
        assert!(answers.iter().all(|count| *count > 0), "{report}");
        assert!(number(&report, "/retried") > 0, "{report}");
        ClusterDns::wait_until_first();
    }

    /// Prints how many queries needed another send, and how long there were such queries.
    fn print_outage(report: &Value) {
        let first = number(report, "/firstRetriedMs");
        let since_first = |path: &str| number(report, path).saturating_sub(first);
        let text = format!(
            "{} of {} queries were sent again, at most {} times; such queries began during {} ms; CoreDNS answered after {} ms",
            number(report, "/retried"),
            number(report, "/queries"),
            number(report, "/mostSends").saturating_sub(1),
            since_first("/lastRetriedMs"),
            since_first(&format!("/firstAnswerMs/{THEIRS}")),
        );
        let mut stderr = std::io::stderr().lock();
        writeln!(stderr, "    {text}: {report}").unwrap();
    }
}
