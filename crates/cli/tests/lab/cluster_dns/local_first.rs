//! Way A: the servers of `manifests/overlays/dns` answer on the cluster DNS address, each the clients of its node, and
//! `CoreDNS` when it cannot.

use crate::cluster::{NODES, Namespace, install, kubectl};
use crate::cluster_dns::{
    CLUSTER_DNS, COREDNS_NODE, DnsServers, Objects, SYSTEM, addresses, give_nodes_a_resolver,
    number, start_coredns, wait_for_rollout, wait_until_serving,
};

const OVERLAY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../manifests/overlays/dns");
const COMPONENT: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../manifests/components/dns"
);

#[test]
fn queries_go_to_the_server_of_the_node_and_to_coredns_when_it_is_killed() {
    install();
    give_nodes_a_resolver();
    let _coredns = start_coredns();
    kubectl(&["apply", "-k", OVERLAY]);
    let _servers = Objects::apply_folder(COMPONENT);
    wait_for_rollout("daemonset/ipvs-topo-dns");
    wait_until_first();
    let servers = DnsServers {
        address: CLUSTER_DNS,
        metrics: |pod| format!("http://{pod}:9153/metrics"),
        retry: "250",
        clients: Namespace::new(),
    };
    for node in NODES {
        // Both are on CoreDNS' node.
        servers.answers_its_node(node, node == COREDNS_NODE);
    }
    let report = servers.report_of_a_kill("n1");
    assert!(number(&report, "/retried") > 0, "{report}");
    wait_until_first();
}

/// Waits until every node's kernel sends queries to the servers on this node only.
fn wait_until_first() {
    let servers = addresses(SYSTEM, "app.kubernetes.io/name=ipvs-topo-dns");
    let others = addresses(
        SYSTEM,
        "k8s-app=kube-dns,app.kubernetes.io/name!=ipvs-topo-dns",
    );
    assert_eq!((servers.len(), others.len()), (NODES.len(), 1));
    wait_until_serving(|node| {
        let here = [&servers, &others].map(|pods| pods.get(node).cloned());
        here.into_iter().flatten().collect()
    });
}
