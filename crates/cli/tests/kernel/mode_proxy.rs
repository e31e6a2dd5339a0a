//! A load balancer that keeps its own address (`ipMode: Proxy`), and whose health probes come from that address.

use crate::agent::kernel;
use crate::external::{
    BOTH, DROPPED, NETS, VIPS, World, answers, at, attempt, counts, servers, service, tcp,
};
use crate::lab::{Process, sh, wait_until};

/// Gives the outside host the addresses of the load balancer, also as source of its connections to the node.
fn become_load_balancer(world: &World) -> Vec<Process> {
    let pods = ["10.244.1.0/24", "fd00:10:244:1::/64"];
    world.lab.route_from_outside(&pods);
    let servers = NETS.iter().zip(["32", "128 nodad"]).map(|(net, prefix)| {
        let (node, vip, outsider) = (net.node, net.vip, net.outsider);
        let balancer = &world.outsider;
        balancer.sh(&format!("ip addr add {vip}/{prefix} dev eth0"));
        balancer.sh(&format!("ip route add {node} dev eth0 src {vip}"));
        sh(&format!("ip route add {vip} via {outsider}"));
        let listen = at(vip, 80);
        let server = balancer.spawn(&format!(
            "guest serve --listen {listen} --name balancer --peer"
        ));
        balancer.wait_for_server(&listen);
        server
    });
    servers.collect()
}

/// Changes the mode of the addresses, and waits until the kernel has followed.
fn set_mode(world: &World, mode: &str) {
    let mut text = BOTH.yaml(&service(""));
    for vip in VIPS {
        let with_mode = format!("{{ip: '{vip}', ipMode: {mode}}}");
        text = text.replace(&format!("{{ip: '{vip}'}}"), &with_mode);
    }
    world.node.write("service.yaml", &text);
    wait_until("the addresses of the mode", || {
        let held = kernel();
        let is_held = |vip: &&str| held.iter().any(|line| line.contains(&at(vip, 80)));
        VIPS.iter().all(|vip| is_held(vip) == (mode == "VIP"))
    });
    world.node.wait_programmed();
}

/// The load balancer answers pods itself, and its probes reach the node port.
fn load_balancer_is_used(world: &World) {
    for net in NETS {
        let seen = answers(Some(&world.client), &tcp(net.vip, 80), 2);
        assert_eq!(seen.servers, counts(&[("balancer", 2)]), "{}", net.vip);
        let pod = if net.vip.contains(':') {
            world.client.v6
        } else {
            world.client.v4
        };
        assert_eq!(Vec::from_iter(seen.peers), [pod.to_string()]);
        let probes = servers(Some(&world.outsider), &tcp(net.node, 30080), 2);
        assert_eq!(probes, counts(&[("near", 1), ("far", 1)]), "{}", net.node);
    }
}

/// KP-WK-10, PAIN-06.
#[test]
fn a_load_balancer_with_mode_proxy_keeps_its_address_and_its_probes_reach_the_node_port() {
    let mut world = World::new(&[]);
    let _servers = become_load_balancer(&world);
    world.write_service(&BOTH);
    world.write_endpoints(&[(&world.near, "n1"), (&world.far, "n2")]);
    world.start_agent();
    set_mode(&world, "Proxy");
    load_balancer_is_used(&world);
    set_mode(&world, "VIP");
    for net in NETS {
        let seen = servers(Some(&world.client), &tcp(net.vip, 80), 2);
        assert_eq!(seen, counts(&[("near", 1), ("far", 1)]), "{}", net.vip);
        let probe = attempt(Some(&world.outsider), &tcp(net.node, 30080));
        assert_eq!(probe, DROPPED, "{}", net.node);
    }
    set_mode(&world, "Proxy");
    load_balancer_is_used(&world);
}
