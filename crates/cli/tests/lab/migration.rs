//! Migration from kube-proxy and back with the commands of `docs/migrate.md`, with continuous
//! traffic from every node.
//!
//! A virtual server with a new scheduler refuses new connections until the kernel has bound it
//! (docs/kernel.md).

use crate::cluster::{NODES, kubectl, kubectl_with, on_node, wait_until_served};
use crate::document::{Desk, blocks, on_every_node};
use crate::traffic::Traffic;
use crate::web;

/// The state after kubeadm: kube-proxy in ipvs mode, and no agent.
fn start_kube_proxy() {
    let base = concat!(env!("CARGO_MANIFEST_DIR"), "/../../manifests/base");
    kubectl(&["delete", "-k", base, "--ignore-not-found"]);
    apply_kube_proxy("ipvs");
    let rollout = ["rollout", "status", "daemonset/kube-proxy"];
    kubectl(&[&rollout[..], &["--namespace=kube-system", "--timeout=300s"]].concat());
    let blocks = blocks("Back to kube-proxy");
    on_every_node(blocks.last().unwrap());
}

/// Applies kube-proxy in `mode`, as kubeadm does.
pub(crate) fn apply_kube_proxy(mode: &str) {
    let objects = include_str!("kube-proxy.yaml")
        .replace("VERSION", env!("CARGO_PKG_VERSION"))
        .replace("mode: ipvs", &format!("mode: {mode}"));
    kubectl_with(&objects, &["apply", "-f", "-"]);
}

/// Permitted refusals of a client while its virtual server has no scheduler. The client retries
/// after 0.1 s, which may be too early on an emulated processor.
const REFUSED: u64 = 3;

/// Objects that a proxy leaves on a node, and commands that find them.
const TRACES: [(&str, &str); 7] = [
    ("sets", "ipset list -n | grep KUBE-"),
    ("rules", "iptables-save | grep KUBE-SERVICES"),
    ("rules of IPv6", "ip6tables-save | grep KUBE-SERVICES"),
    ("addresses", "ip address show dev kube-ipvs0 | grep inet"),
    ("tables", "nft list tables | grep ipvs-topo"),
    ("routes", "ip route show table local proto 173 | grep local"),
    ("record", "ls /run/ipvs-topo/owned"),
];

const OF_KUBE_PROXY: &[&str] = &["sets", "rules", "rules of IPv6", "addresses"];

const OF_OURS: &[&str] = &["tables", "routes", "record"];

/// The names of all traces on a node.
fn traces(node: &str) -> Vec<String> {
    let looks = TRACES.map(|(name, look)| format!("{look} >/dev/null 2>&1 && echo {name}\n"));
    let found = on_node(node, &format!("{}true", looks.concat()));
    found.lines().map(str::to_owned).collect()
}

/// The scheduler of the virtual server, which shows which proxy made it.
fn scheduler(node: &str, address: &str) -> String {
    let held = on_node(node, &format!("ipvsadm -Ln -t {address}"));
    let line = held.lines().find(|line| line.contains(address)).unwrap();
    line.split_whitespace().nth(2).unwrap().to_owned()
}

#[test]
fn alone_the_documented_migration_from_kube_proxy_and_back_keeps_traffic_running() {
    start_kube_proxy();
    let namespace = web::start();
    let address = web::address(&namespace);
    wait_until_served(&address);
    let mut traffic = Traffic::start(&namespace, &address);
    let desk = Desk::new();
    // The output of `render`, of the configuration, and of `status`.
    let look = &[&*address, "mode: ipvs"][..];
    let there = &[&*address][..];
    for (heading, expected, left, schedules) in [
        ("Look first", look, OF_KUBE_PROXY, "rr"),
        ("To ipvs-topo", there, OF_OURS, "wrr"),
        ("Back to kube-proxy", &[], OF_KUBE_PROXY, "rr"),
    ] {
        let printed = desk.follow(heading);
        for words in expected {
            assert!(printed.contains(words), "{heading}: {words}: {printed}");
        }
        traffic.flows_but_for_refusals(heading, REFUSED);
        for node in NODES {
            assert_eq!(traces(node), left, "{heading}: {node}");
            assert_eq!(scheduler(node, &address), schedules, "{heading}: {node}");
        }
    }
}
