//! ARP and neighbour discovery for load balancer addresses: the node is silent, and announcers work.

use crate::external::{NODE_PORT, World, attempt, tcp};
use crate::lab::{NODE_V4, NODE_V6, sh, succeeds, wait_until};
use crate::yaml::External;

/// Load balancer addresses in the network of the node and the outside host.
const ON_LINK: [&str; 2] = ["192.168.10.200", "fd00:10::200"];

fn start() -> World {
    let external = External {
        ingress: &ON_LINK,
        ..NODE_PORT
    };
    World::start(&[], &external)
}

/// Whether the outside host gets an ARP reply for an address.
fn is_answered(world: &World, ip: &str) -> bool {
    let outside = world.lab.outside();
    succeeds(&format!(
        "ip netns exec {outside} busybox arping -c 2 -w 3 -I eth0 {ip}"
    ))
}

/// Whether the outside host connects, without a neighbour entry from before.
fn connects(world: &World, ip: &str) -> bool {
    world.outsider.sh("ip neigh flush dev eth0");
    attempt(Some(&world.outsider), &tcp(ip, 80)).is_ok()
}

#[test]
fn an_address_on_a_link_is_answered_in_both_families_and_a_load_balancer_address_is_not() {
    let world = start();
    assert!(is_answered(&world, NODE_V4), "the test can fail");
    // The kernel uses a new IPv6 address only after it has looked for a duplicate.
    wait_until("an answer of the node's IPv6 address", || {
        attempt(Some(&world.outsider), &tcp(NODE_V6, 30080)).is_ok()
    });
    assert!(!is_answered(&world, ON_LINK[0]));
    for ip in ON_LINK {
        assert!(!connects(&world, ip), "{ip}");
    }
    // As kube-vip does on the node that it elects.
    for (ip, length) in ON_LINK.into_iter().zip(["32", "128 nodad"]) {
        sh(&format!("ip addr add {ip}/{length} dev eth0"));
        wait_until(&format!("an answer of {ip}"), || connects(&world, ip));
    }
    assert!(is_answered(&world, ON_LINK[0]));
    for (ip, length) in ON_LINK.into_iter().zip([32, 128]) {
        sh(&format!("ip addr del {ip}/{length} dev eth0"));
        wait_until(&format!("no answer of {ip}"), || !connects(&world, ip));
    }
}

/// As the speaker of `MetalLB` does, which answers requests itself.
#[test]
fn an_announcers_own_replies_pass_and_bring_traffic() {
    let world = start();
    let vip = ON_LINK[0];
    world
        .outsider
        .sh("sysctl -qw net.ipv4.conf.all.arp_accept=1");
    assert!(!connects(&world, vip));
    world.outsider.sh("ip neigh flush dev eth0");
    sh(&format!(
        "busybox arping -A -c 2 -w 3 -I eth0 -s {vip} {vip} || true"
    ));
    let neighbour = world.outsider.sh(&format!("ip neigh show {vip}"));
    assert!(neighbour.contains("lladdr"), "{neighbour:?}");
    assert_eq!(attempt(Some(&world.outsider), &tcp(vip, 80)), Ok(()));
}

#[test]
fn kp_cf_28_strict_arp_also_concerns_the_senders_of_requests_and_off_lets_the_node_answer() {
    const ANNOUNCE: &str = "sysctl -n net.ipv4.conf.all.arp_announce";
    let mut world = start();
    assert_eq!(sh(ANNOUNCE).trim(), "0");
    world.node.kill();
    world.node.launch(&["--ipvs-strict-arp"]);
    world.node.wait_ready();
    assert_eq!(sh(ANNOUNCE).trim(), "2");
    assert!(!is_answered(&world, ON_LINK[0]));
    world.node.kill();
    world.node.launch(&["--ipvs-strict-arp=false"]);
    world.node.wait_ready();
    wait_until("an answer", || is_answered(&world, ON_LINK[0]));
    assert!(connects(&world, ON_LINK[0]));
    assert!(!succeeds("nft list table arp ipvs-topo"));
    assert!(!connects(&world, ON_LINK[1]), "IPv6 has no such rule");
}
