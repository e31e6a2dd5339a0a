//! Source addresses that servers see, for each way to recognize this node's pods.

use std::collections::BTreeSet;

use crate::external::{
    BOTH, Client, DROPPED, LOCAL, NETS, REFUSED, Target, World, answers, attempt, node_addresses,
    service, tcp, udp,
};
use crate::lab::{NODE_V4, NODE_V6, Place, sh, wait_until};
use crate::yaml::Service;

const CLUSTER_IPS: [&str; 2] = ["10.96.0.10", "fd00:10:96::a"];

/// The source address of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    /// The client's own.
    Own,
    /// An address of the node that the client does not have.
    Masqueraded,
}
use Source::{Masqueraded, Own};

/// What servers see of the outside host, of a pod of another node, of the client pod, and of the pod `near`, which is also
/// an endpoint.
type Sources = [Source; 4];

/// Starts the agent with other arguments, in the same world.
fn restart(world: &mut World, arguments: &[&str]) {
    world.node.kill();
    world.node.launch(arguments);
    world.node.wait_ready();
    let tables = sh("nft list table ip ipvs-topo");
    assert!(tables.contains("postrouting"), "{tables}");
}

fn cluster_ip(net: usize) -> [Target; 2] {
    let ip = CLUSTER_IPS[net];
    [tcp(ip, 80), udp(ip, 53)]
}

/// The own address of a client in a family.
fn own(client: Client<'_>, net: usize) -> String {
    match (client, net) {
        (Some(place), 0) => place.v4.to_string(),
        (Some(place), _) => place.v6.to_string(),
        (None, 0) => NODE_V4.to_owned(),
        (None, _) => NODE_V6.to_owned(),
    }
}

fn assert_sources(world: &World, elsewhere: &Place, sources: Sources, what: &str) {
    let node = node_addresses();
    let clients = [&world.outsider, elsewhere, &world.client, &world.near].map(Some);
    for net in 0..NETS.len() {
        for target in cluster_ip(net) {
            for (client, source) in clients.into_iter().zip(sources) {
                let mut peers = answers(client, &target, 2).peers;
                // Only of a pod that calls itself.
                let is_endpoint = client.map(|pod| pod.v4) == Some(world.near.v4);
                if is_endpoint && source == Own {
                    peers.retain(|peer| !node.contains(peer));
                }
                let expected = own(client, net);
                let is_as_expected = match source {
                    Own => peers == BTreeSet::from([expected]),
                    Masqueraded => peers.is_subset(&node) && !peers.is_empty(),
                };
                assert!(
                    is_as_expected,
                    "{what}: {client:?} to {target:?}: {peers:?}"
                );
            }
            // The node's own processes have an address of the node in any case.
            let peers = answers(None, &target, 2).peers;
            assert!(
                peers.is_subset(&node),
                "{what}: the node to {target:?}: {peers:?}"
            );
        }
    }
}

#[test]
fn kp_it_20_servers_see_the_address_of_local_pods_and_the_node_for_others_by_every_mode() {
    let mut world = World::start(&[], &BOTH);
    world
        .lab
        .route_from_outside(&["10.96.0.0/12", "fd00:10:96::/112"]);
    let elsewhere = world.lab.pod_elsewhere(1);
    assert_sources(&world, &elsewhere, [Own; 4], "without a detector");
    let pods = [Masqueraded, Masqueraded, Own, Own];
    let cases: [(&[&str], Sources); 6] = [
        (
            &["--cluster-cidr=10.244.0.0/16,fd00:10:244::/48"],
            [Masqueraded, Own, Own, Own],
        ),
        (&["--detect-local-mode=NodeCIDR"], pods),
        (
            &[
                "--detect-local-mode=InterfaceNamePrefix",
                "--pod-interface-name-prefix=pod",
            ],
            pods,
        ),
        (
            &[
                "--detect-local-mode=BridgeInterface",
                "--pod-bridge-interface=pod1",
            ],
            // `pod1` is the link of the client.
            [Masqueraded, Masqueraded, Own, Masqueraded],
        ),
        (&["--masquerade-all"], [Masqueraded; 4]),
        (&["--masquerade-all=false"], [Own; 4]),
    ];
    for (arguments, sources) in cases {
        restart(&mut world, arguments);
        assert_sources(&world, &elsewhere, sources, &format!("{arguments:?}"));
    }
}

/// Outside of every Service range.
const OTHER_IPS: [&str; 2] = ["172.20.0.10", "fd00:20:96::a"];

#[test]
fn kp_lm_01_addresses_outside_of_service_ranges_and_refused_ports_are_no_exception() {
    let mut world = World::start(&[], &BOTH);
    let routes = [
        "10.96.0.0/12",
        "fd00:10:96::/112",
        "172.20.0.0/16",
        "fd00:20:96::/112",
    ];
    world.lab.route_from_outside(&routes);
    let other = Service {
        ips: &OTHER_IPS,
        ..service("")
    };
    world.node.write("service.yaml", &other.yaml());
    for mode in ["--masquerade-all", "--detect-local-mode=NodeCIDR"] {
        restart(&mut world, &[mode]);
        for (net, ip) in OTHER_IPS.into_iter().enumerate() {
            for target in [tcp(ip, 80), udp(ip, 53)] {
                let peers = answers(Some(&world.outsider), &target, 2).peers;
                assert!(
                    peers.is_subset(&node_addresses()),
                    "{mode}: {target:?}: {peers:?}"
                );
            }
            for target in [tcp(ip, 81), udp(ip, 54), tcp(CLUSTER_IPS[net], 80)] {
                for client in world.clients() {
                    assert_eq!(
                        attempt(client, &target),
                        REFUSED,
                        "{target:?} from {client:?}"
                    );
                }
            }
        }
    }
}

#[test]
fn kp_lm_03_links_also_decide_who_is_outside_and_masquerading_spares_local_policy() {
    let mut world = World::start(&[], &LOCAL);
    let modes: [&[&str]; 2] = [
        &["--masquerade-all"],
        &[
            "--detect-local-mode=InterfaceNamePrefix",
            "--pod-interface-name-prefix=pod",
        ],
    ];
    for mode in modes {
        restart(&mut world, mode);
        for net in NETS {
            for target in [tcp(net.vip, 80), udp(net.vip, 53), tcp(net.node, 30080)] {
                let got = answers(Some(&world.outsider), &target, 4);
                let own = BTreeSet::from([net.outsider.to_owned()]);
                assert_eq!(got.peers, own, "{mode:?}: {target:?}");
                assert_eq!(got.servers.len(), 1, "{mode:?}: {target:?}: {got:?}");
                for client in [Some(&world.client), None] {
                    let got = answers(client, &target, 4);
                    assert_eq!(got.servers.len(), 2, "{mode:?}: {target:?}: {got:?}");
                }
            }
        }
    }
    world.write_endpoints(&[(&world.far, "n2")]);
    for net in NETS {
        let target = tcp(net.vip, 80);
        wait_until("silence", || {
            attempt(Some(&world.outsider), &target) == DROPPED
        });
        for client in [Some(&world.client), None] {
            assert_eq!(attempt(client, &target), Ok(()), "{client:?}");
        }
    }
}
