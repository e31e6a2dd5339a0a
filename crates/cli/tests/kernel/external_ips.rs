//! Traffic to external IPs: from a host outside of the cluster, from a pod, and from the node.

use std::collections::BTreeSet;
use std::net::TcpListener;

use crate::agent::kernel;
use crate::external::{
    DROPPED, NETS, NODE_PORT, Net, REFUSED, Target, VIPS, World, answers, at, attempt, counts,
    node_addresses, servers, tcp, udp,
};
use crate::lab::{NODE_V4, NODE_V6, OUTSIDER_V4, OUTSIDER_V6, sh, wait_until};
use crate::yaml::External;

const ALLOWED: &[&str] = &["--external-ip-ranges", "203.0.113.0/24,2001:db8::/64"];

/// A Service of type ClusterIP.
const EXTERNAL: External<'_> = External {
    node_ports: &[],
    ips: VIPS,
    ..NODE_PORT
};

fn targets(ip: &str) -> [Target; 2] {
    [tcp(ip, 80), udp(ip, 53)]
}

/// `loadBalancerSourceRanges` are for load balancers (KP-IT-30).
#[test]
fn kp_vs_02_clients_anywhere_reach_all_endpoints_at_an_allowed_external_ip_and_at_no_other() {
    let not_allowed = "192.0.2.9";
    let world = World::start(
        ALLOWED,
        &External {
            ips: &[VIPS, &[not_allowed]].concat(),
            ranges: &["198.51.100.0/24"],
            ..EXTERNAL
        },
    );
    assert!(!kernel().iter().any(|line| line.contains(not_allowed)));
    let both = counts(&[("near", 2), ("far", 2)]);
    for Net { vip, .. } in NETS {
        for target in targets(vip) {
            for client in world.clients() {
                let got = servers(client, &target, 4);
                assert_eq!(got, both, "{target:?} from {client:?}");
            }
            let peers = answers(Some(&world.outsider), &target, 2).peers;
            assert!(
                peers.is_subset(&node_addresses()),
                "{target:?}: {peers:?} are not addresses of the node"
            );
        }
        for client in world.clients() {
            assert_eq!(attempt(client, &tcp(vip, 22)), REFUSED, "{client:?}");
        }
    }
}

/// KP-IT-20, KP-IN-13
#[test]
fn kp_ut_016_local_policy_keeps_the_address_of_outside_clients_at_an_external_ip() {
    let world = World::start(
        ALLOWED,
        &External {
            local: true,
            ..EXTERNAL
        },
    );
    let both = counts(&[("near", 2), ("far", 2)]);
    for net in NETS {
        for target in targets(net.vip) {
            let outside = answers(Some(&world.outsider), &target, 4);
            assert_eq!(outside.servers, counts(&[("near", 4)]), "{target:?}");
            let own: BTreeSet<_> = [net.outsider.to_owned()].into();
            assert_eq!(outside.peers, own, "{target:?}");
            for client in [Some(&world.client), None] {
                let got = servers(client, &target, 4);
                assert_eq!(got, both, "{target:?} from {client:?}");
            }
        }
    }
    world.write_endpoints(&[(&world.far, "n2")]);
    for target in NETS.iter().flat_map(|net| targets(net.vip)) {
        let outsider = Some(&world.outsider);
        wait_until("silence", || attempt(outsider, &target) == DROPPED);
    }
}

#[test]
fn pain_03_an_external_ip_of_this_node_serves_the_port_and_leaves_the_others_to_the_node() {
    let world = World::start(
        &["--external-ip-ranges", "192.168.10.0/24,fd00:10::/64"],
        &External {
            ips: &[NODE_V4, NODE_V6],
            ..EXTERNAL
        },
    );
    let both = counts(&[("near", 2), ("far", 2)]);
    for Net { node, .. } in NETS {
        let _server = TcpListener::bind((node, 2222)).unwrap();
        for client in world.clients() {
            for target in targets(node) {
                let got = servers(client, &target, 4);
                assert_eq!(got, both, "{target:?} from {client:?}");
            }
            assert_eq!(attempt(client, &tcp(node, 2222)), Ok(()), "{client:?}");
            assert_eq!(attempt(client, &tcp(node, 81)), REFUSED, "{client:?}");
        }
    }
}

/// PAIN-03: bound on the node, the address would take away the node's way out.
#[test]
fn pain_03_a_gateway_is_not_bound_as_an_external_ip_until_no_route_uses_it() {
    const LATER: &str = "192.168.10.99";
    let external = |ips| External { ips, ..EXTERNAL };
    let world = World::start(
        &["--external-ip-ranges", "192.168.10.0/24,fd00:10::/64"],
        &external(&[OUTSIDER_V4, OUTSIDER_V6]),
    );
    let _gateway = world.outsider.listen(2222);
    let is_served = |ip: &str| kernel().iter().any(|line| line.contains(&at(ip, 80)));
    let is_bound = |ip: &str| sh(&format!("ip route get {ip}")).contains("local");
    let refused = |ip: &str| {
        let text = format!("external IP {ip} is a gateway of this node's routes");
        world.node.wait_log(&text);
        assert!(!is_served(ip) && !is_bound(ip), "{ip}");
    };
    wait_until("the cluster IP", || is_served("10.96.0.10"));
    refused(OUTSIDER_V4);
    refused(OUTSIDER_V6);
    assert_eq!(attempt(None, &tcp(OUTSIDER_V4, 2222)), Ok(()));

    // Rules may lead to any table.
    let paths = format!("nexthop via {OUTSIDER_V4} nexthop via {LATER}");
    sh(&format!("ip route add 198.51.100.0/24 table 1000 {paths}"));
    world.write_service(&external(&[OUTSIDER_V4, LATER]));
    refused(LATER);
    sh("ip route del 198.51.100.0/24 table 1000");
    wait_until("the former gateway", || is_served(LATER));
    let both = counts(&[("near", 1), ("far", 1)]);
    assert_eq!(servers(None, &tcp(LATER, 80), 2), both);

    // D13: what a routing daemon writes does not end a Service.
    sh(&format!("ip route add 198.51.100.0/24 via {LATER}"));
    let text = format!("external IP {LATER} is now a gateway of this node's routes");
    world.node.wait_log(&text);
    assert_eq!(servers(None, &tcp(LATER, 80), 2), both);
}
