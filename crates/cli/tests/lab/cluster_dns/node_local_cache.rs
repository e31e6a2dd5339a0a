//! Way B: `NodeLocal DNSCache` asks the server of its node, and `CoreDNS` when it does not run.
//! A `CoreDNS` with the lines of `docs/dns.md` stands for `NodeLocal DNSCache`, which is `CoreDNS` with its own set-up.

use crate::cluster::{NODES, Namespace, install, on_node, variable};
use crate::cluster_dns::{
    DnsServers, Objects, create_cart, give_nodes_a_resolver, indented, lines_below, replaced,
    start_coredns, wait_for_rollout, wait_until_cart_is,
};

/// The address of `NodeLocal DNSCache` on each node.
const ADDRESS: &str = "169.254.20.10";

/// musl's resolver sends a query again after 2.5 s. Every resend asks the one cache, and an emulated cache with a backlog
/// never catches up with clients that send again every 250 ms.
const RETRY: &str = "2500";

const COMPONENT: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../manifests/components/dns-node-local"
);

/// The interface with [`ADDRESS`]; removed when dropped.
struct Interfaces;

impl Interfaces {
    fn add() -> Self {
        for node in NODES {
            on_node(
                node,
                &format!(
                    "ip link add nodelocaldns type dummy && \
                     ip address add {ADDRESS}/32 dev nodelocaldns && \
                     ip link set nodelocaldns up"
                ),
            );
        }
        Self
    }
}

impl Drop for Interfaces {
    fn drop(&mut self) {
        for node in NODES {
            on_node(node, "ip link delete nodelocaldns || true");
        }
    }
}

#[test]
fn the_cache_of_a_node_asks_the_server_there_and_coredns_when_it_is_killed() {
    install();
    give_nodes_a_resolver();
    let _interfaces = Interfaces::add();
    let _coredns = start_coredns();
    let _servers = Objects::apply_folder(COMPONENT);
    let _caches = Objects::apply(caches());
    for what in ["daemonset/ipvs-topo-dns", "daemonset/node-local-dns"] {
        wait_for_rollout(what);
    }
    let _cart = create_cart("topology.ipvs-topo.io/mode: hard, topology.ipvs-topo.io/keys: node");
    let servers = DnsServers {
        address: ADDRESS,
        metrics: |_| "http://127.0.0.1:9154/metrics".to_owned(),
        retry: RETRY,
        clients: Namespace::new(),
    };
    for node in NODES {
        servers.answers_its_node(node, false);
        wait_until_cart_is(&[node], node, ADDRESS);
    }
    servers.report_of_a_kill("n1");
    wait_until_cart_is(&["n1"], "n1", ADDRESS);
    servers.answers_its_node("n1", false);
}

fn caches() -> String {
    let caches = include_str!("node-local-dns.yaml");
    let caches = replaced(caches, "DNS_IMAGE", &variable("LAB_DNS_IMAGE"));
    let caches = replaced(&caches, "ADDRESS", ADDRESS);
    replaced(
        &caches,
        "        LINES\n",
        &indented(lines_below("### B. "), 8),
    )
}
