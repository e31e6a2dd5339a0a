//! Node ports on loopback addresses, which the agent serves itself.

use crate::external::{NODE_PORT, REFUSED, World, attempt, counts, servers, tcp, udp};
use crate::lab::{NODE_V4, wait_until};
use crate::yaml::External;

const LOOPBACK: [&str; 2] = ["127.0.0.1", "::1"];

/// KP-VS-15
#[test]
fn pain_45_processes_of_the_node_reach_all_endpoints_at_a_tcp_node_port_on_loopback_addresses() {
    let world = World::start(&["--nodeport-addresses", "localhost"], &NODE_PORT);
    for ip in LOOPBACK {
        let target = tcp(ip, 30080);
        wait_until("the port", || attempt(None, &target).is_ok());
        assert_eq!(
            servers(None, &target, 4),
            counts(&[("near", 2), ("far", 2)])
        );
        assert_eq!(attempt(None, &udp(ip, 30053)), REFUSED, "as in kube-proxy");
    }
    assert_eq!(attempt(None, &tcp(NODE_V4, 30080)), REFUSED, "not selected");

    world.write_endpoints(&[(&world.far, "n2")]);
    let is_far = || servers(None, &tcp(LOOPBACK[0], 30080), 2) == counts(&[("far", 2)]);
    wait_until("the other endpoint", is_far);
    world.write_service(&External {
        node_ports: &[30081, 30053],
        ..NODE_PORT
    });
    for ip in LOOPBACK {
        wait_until("the new port", || attempt(None, &tcp(ip, 30081)).is_ok());
        wait_until("no old port", || attempt(None, &tcp(ip, 30080)) == REFUSED);
    }
}

#[test]
fn all_addresses_do_not_include_loopback_addresses() {
    let _world = World::start(&["--nodeport-addresses", "all"], &NODE_PORT);
    wait_until("the node port", || {
        attempt(None, &tcp(NODE_V4, 30080)).is_ok()
    });
    for ip in LOOPBACK {
        assert_eq!(attempt(None, &tcp(ip, 30080)), REFUSED);
    }
}
