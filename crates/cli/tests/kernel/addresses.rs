//! The agent handles an address that the node gains or loses at once, without the periodic check.

use crate::agent::{Node, wait_kernel};
use crate::lab::{Lab, sh, wait_until};
use crate::yaml::{NODES, web};

/// A node whose next periodic check is after the end of the test.
fn node() -> Node {
    let ranges = "10.96.0.0/12,fd00:10:96::/112";
    let node = Node::new().with(&["--service-cidr", ranges, "--check-period", "1h"]);
    node.write("nodes.yaml", NODES);
    for (name, ips) in [
        ("web", ["10.96.0.10", "fd00:10:96::a"]),
        ("other", ["10.96.0.11", "fd00:10:96::b"]),
    ] {
        let service = web(name, &ips);
        node.write(&format!("{name}.yaml"), &service.yaml());
    }
    node
}

const OTHER: [&str; 2] = [
    "-A -t 10.96.0.11:80 -s wrr",
    "-A -t [fd00:10:96::b]:80 -s wrr",
];

#[test]
fn t03_a_service_address_on_the_node_is_removed_at_once_and_later_restored() {
    let _lab = Lab::new();
    let mut node = node();
    node.start();
    let all = [
        OTHER[0],
        OTHER[1],
        "-A -t 10.96.0.10:80 -s wrr",
        "-A -t [fd00:10:96::a]:80 -s wrr",
    ];
    wait_kernel(&all);
    sh("ip addr add 10.96.0.10/32 dev eth0");
    wait_kernel(&[OTHER[0], OTHER[1], all[3]]);
    node.wait_log("10.96.0.10 is an address of this machine (link eth0)");
    sh("ip addr add fd00:10:96::a/128 dev eth0 nodad");
    wait_kernel(&OTHER);
    sh("ip addr del 10.96.0.10/32 dev eth0; ip addr del fd00:10:96::a/128 dev eth0");
    wait_kernel(&all);
}

#[test]
fn d2_when_the_node_changes_its_address_the_routes_follow() {
    let _lab = Lab::new();
    let mut node = node();
    node.start();
    let routes = || sh("ip route show table local proto 173");
    let from = |address: &str| format!("local 10.96.0.0/12 dev lo scope host src {address}");
    assert_eq!(routes().trim(), from("192.168.10.11"));
    sh("ip addr add 192.168.20.5/24 dev eth0");
    // The kernel removes the route together with its source address.
    sh("ip addr del 192.168.10.11/24 dev eth0");
    wait_until("the route from the other address", || {
        routes().trim() == from("192.168.20.5")
    });
    sh("ip addr add 192.168.10.11/24 dev eth0");
    wait_until("the route from the Node's own address", || {
        routes().trim() == from("192.168.10.11")
    });
}

#[test]
fn d2_a_service_address_that_leaves_kube_ipvs0_has_our_route_at_once() {
    let _lab = Lab::new();
    // Without a Service range each Service address has a route.
    let mut node = Node::new().with(&["--check-period", "1h"]);
    node.write("nodes.yaml", NODES);
    node.write("web.yaml", &web("web", &["10.96.0.10"]).yaml());
    sh("ip link add kube-ipvs0 type dummy; ip address add 10.96.0.10/32 dev kube-ipvs0");
    node.start();
    wait_kernel(&["-A -t 10.96.0.10:80 -s wrr"]);
    let routes = || sh("ip route show table local proto 173");
    assert_eq!(routes(), "");
    sh("ip address flush dev kube-ipvs0");
    wait_until("the route", || {
        routes().trim() == "local 10.96.0.10 dev lo scope host src 192.168.10.11"
    });
}
