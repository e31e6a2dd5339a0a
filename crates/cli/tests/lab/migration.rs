//! From kube-proxy and back: the very commands of `docs/migrate.md`, with traffic from every node all the time.
//!
//! A virtual server that gets another scheduler refuses new connections until the kernel has bound it (docs/kernel.md).

use crate::cluster::{NODES, kubectl, kubectl_with, on_node, wait_until_served};
use crate::document::{Desk, blocks, on_every_node};
use crate::traffic::Traffic;
use crate::web;

/// The cluster as kubeadm leaves it: kube-proxy in ipvs mode, and nothing of ours.
fn start_kube_proxy() {
    let base = concat!(env!("CARGO_MANIFEST_DIR"), "/../../manifests/base");
    kubectl(&["delete", "-k", base, "--ignore-not-found"]);
    apply_kube_proxy("ipvs");
    let rollout = ["rollout", "status", "daemonset/kube-proxy"];
    kubectl(&[&rollout[..], &["--namespace=kube-system", "--timeout=300s"]].concat());
    let blocks = blocks("Back to kube-proxy");
    on_every_node(blocks.last().unwrap());
}

/// kube-proxy in `mode`, as kubeadm makes it.
pub(crate) fn apply_kube_proxy(mode: &str) {
    let objects = include_str!("kube-proxy.yaml")
        .replace("VERSION", env!("CARGO_PKG_VERSION"))
        .replace("mode: ipvs", &format!("mode: {mode}"));
    kubectl_with(&objects, &["apply", "-f", "-"]);
}

/// How many of a client's connections may meet the moment in which its virtual server has no scheduler: it tries again
/// after a tenth of a second, which on an emulated processor may be too early once or twice.
const REFUSED: u64 = 3;

/// What either proxy leaves behind on a node, and how to see it.
const TRACES: [(&str, &str); 7] = [
    ("sets", "ipset list -n | grep KUBE-"),
    ("rules", "iptables-save | grep KUBE-SERVICES"),
    ("rules of IPv6", "ip6tables-save | grep KUBE-SERVICES"),
    ("addresses", "ip address show dev kube-ipvs0 | grep inet"),
    ("tables", "nft list tables | grep ipvs-topo"),
    ("routes", "ip route show table local proto 173 | grep local"),
    ("record", "ls /run/ipvs-topo/owned"),
];

/// What kube-proxy leaves behind.
const OF_KUBE_PROXY: &[&str] = &["sets", "rules", "rules of IPv6", "addresses"];

/// What the agent leaves behind.
const OF_OURS: &[&str] = &["tables", "routes", "record"];

/// What is there of all that.
fn traces(node: &str) -> Vec<String> {
    let looks = TRACES.map(|(name, look)| format!("{look} >/dev/null 2>&1 && echo {name}\n"));
    let found = on_node(node, &format!("{}true", looks.concat()));
    found.lines().map(str::to_owned).collect()
}

/// Whether the virtual server is as ours or as kube-proxy makes it.
fn scheduler(node: &str, address: &str) -> String {
    let held = on_node(node, &format!("ipvsadm -Ln -t {address}"));
    let line = held.lines().find(|line| line.contains(address)).unwrap();
    line.split_whitespace().nth(2).unwrap().to_owned()
}

#[test]
fn alone_from_kube_proxy_and_back_by_the_document_while_traffic_goes_on() {
    start_kube_proxy();
    let namespace = web::start();
    let address = web::address(&namespace);
    wait_until_served(&address);
    let mut traffic = Traffic::start(&namespace, &address);
    let desk = Desk::new();
    // What it prints: of `render` and of the configuration, and of `status`.
    let look = &[&*address, "mode: ipvs"][..];
    let there = &[&*address][..];
    for (heading, printed, left, schedules) in [
        ("Look first", look, OF_KUBE_PROXY, "rr"),
        ("To ipvs-topo", there, OF_OURS, "wrr"),
        ("Back to kube-proxy", &[], OF_KUBE_PROXY, "rr"),
    ] {
        let told = desk.follow(heading);
        for words in printed {
            assert!(told.contains(words), "{heading}: {words}: {told}");
        }
        traffic.flows_but_for_refusals(heading, REFUSED);
        for node in NODES {
            assert_eq!(traces(node), left, "{heading}: {node}");
            assert_eq!(scheduler(node, &address), schedules, "{heading}: {node}");
        }
    }
}
