//! Health check node ports: what a load balancer learns from this node.

use std::io::{Read as _, Write as _};
use std::time::Duration;

use crate::external::{Client, LOCAL, NETS, Net, REFUSED, World, at, attempt, tcp};
use crate::lab::{try_connect, wait_until};
use crate::yaml::External;

const CHECKED: External<'_> = External {
    health_port: 30999,
    ..LOCAL
};

/// The status and the body of the response; `None` without one.
fn asked(client: Client<'_>, ip: &str, port: u16) -> Option<(String, String)> {
    let ask = || {
        let mut stream = try_connect(&at(ip, port))?;
        stream.set_read_timeout(Some(Duration::from_secs(10)))?;
        stream.write_all(b"GET /healthz HTTP/1.0\r\n\r\n")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok::<_, std::io::Error>(answer)
    };
    let answer = client.map_or_else(ask, |place| place.inside(ask)).ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    let status = head.split(' ').nth(1)?;
    Some((status.to_owned(), body.to_owned()))
}

fn answer(status: &str, endpoints: usize) -> (String, String) {
    let body = format!(
        r#"{{"service":{{"namespace":"t","name":"web"}},"localEndpoints":{endpoints},"serviceProxyHealthy":true}}"#
    );
    (status.to_owned(), body)
}

#[test]
fn kp_hc_10_load_balancers_learn_at_every_address_of_a_service_whether_this_node_has_endpoints() {
    let world = World::start(&[], &CHECKED);
    for Net { node, vip, .. } in NETS {
        wait_until("the port", || asked(None, node, 30999).is_some());
        for client in world.clients() {
            for ip in [node, vip] {
                let found = asked(client, ip, 30999);
                assert_eq!(found, Some(answer("200", 1)), "{ip} from {client:?}");
            }
            let other = attempt(client, &tcp(vip, 30998));
            assert_eq!(other, REFUSED, "{vip} from {client:?}");
        }
    }

    world.write_endpoints(&[(&world.far, "n2")]);
    let outsider = Some(&world.outsider);
    for Net { node, vip, .. } in NETS {
        for ip in [node, vip] {
            let is_away = || asked(outsider, ip, 30999) == Some(answer("503", 0));
            wait_until("503", is_away);
        }
    }
}

/// KP-UT-037
#[test]
fn kp_hc_14_the_health_port_changes_and_ends_with_the_service() {
    let world = World::start(&[], &CHECKED);
    let outsider = Some(&world.outsider);
    let is_open = |port| {
        let mut ips = NETS.iter().flat_map(|net| [net.node, net.vip]);
        ips.all(|ip| asked(outsider, ip, port) == Some(answer("200", 1)))
    };
    let is_closed = |port| {
        let mut ips = NETS.iter().flat_map(|net| [net.node, net.vip]);
        ips.all(|ip| attempt(outsider, &tcp(ip, port)) == REFUSED)
    };
    wait_until("the first port", || is_open(30999));
    world.write_service(&External {
        health_port: 31999,
        ..CHECKED
    });
    wait_until("the second port", || is_open(31999));
    wait_until("the first port to close", || is_closed(30999));
    world.write_service(&External {
        local: false,
        ..CHECKED
    });
    wait_until("all ports to close", || {
        is_closed(31999) && is_closed(30999)
    });
}

/// KP-HC-13
#[test]
fn the_health_port_is_open_at_the_selected_node_addresses_only() {
    let world = World::start(&["--nodeport-addresses", "192.168.10.0/24"], &CHECKED);
    let [v4, v6] = NETS;
    wait_until("IPv4", || {
        asked(None, v4.node, 30999) == Some(answer("200", 1))
    });
    wait_until("IPv6", || {
        asked(None, v6.vip, 30999) == Some(answer("200", 1))
    });
    let loopback = attempt(None, &tcp("127.0.0.1", 30999));
    assert_eq!(loopback, REFUSED);
    assert_eq!(attempt(Some(&world.outsider), &tcp(v4.vip, 30999)), REFUSED);
}
