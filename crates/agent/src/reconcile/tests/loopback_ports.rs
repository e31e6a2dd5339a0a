//! Node ports on loopback addresses: which sockets the loop publishes.

use std::net::SocketAddr;
use std::num::NonZeroU16;

use cluster::object::Object;
use dataplane::routes::addresses::Interface;
use topology_core::model::{Family, Frontend, ObjectName};

use super::fake::Shared;
use super::script::{Loop, service};

/// A Service with the node ports 30080, and 30053 of UDP.
fn with_node_ports(name: &str, ip: &str) -> Object {
    let Object::Service(mut service) = service(name, ip, &["80/TCP", "53/UDP"]) else {
        panic!("a Service")
    };
    service.frontends.push(Frontend::node_port(Family::V4));
    for (port, number) in service.ports.iter_mut().zip([30080, 30053]) {
        port.node_port = NonZeroU16::new(number);
    }
    Object::Service(service)
}

/// A node with the IPv6 loopback address, where node ports are served at `entries`.
fn node(entries: &'static [&'static str]) -> Loop {
    let shared = Shared::default();
    shared.0.borrow_mut().addresses = vec![Interface {
        link: "lo".to_owned(),
        address: "::1".parse().unwrap(),
        prefix: 128,
        global: false,
    }];
    Loop::with(&shared, |config| {
        let entries = entries.iter().map(|entry| entry.parse().unwrap());
        config.node_port_addresses = entries.collect();
    })
}

/// Where connections to the socket go.
fn target(agent: &Loop, service: &str, socket: &str) -> Option<String> {
    let socket: SocketAddr = socket.parse().unwrap();
    let place = (ObjectName::new("t", service), socket);
    let target = agent.reconciler.loopback_ports.get(&place)?;
    Some(target.to_string())
}

#[tokio::test(start_paused = true)]
async fn kp_vs_15_only_localhost_serves_tcp_node_ports_on_loopback_addresses() {
    for (entries, is_served) in [
        (&[][..], false),
        (&["all"], false),
        (&["127.0.0.0/8"], false),
        (&["localhost"], true),
        (&["primary", "localhost"], true),
    ] {
        let mut agent = node(entries);
        agent.start(vec![with_node_ports("web", "10.96.0.1")]).await;
        let expected = is_served.then(|| "10.96.0.1:80".to_owned());
        for socket in ["127.0.0.1:30080", "[::1]:30080"] {
            assert_eq!(target(&agent, "web", socket), expected, "{entries:?}");
        }
        assert_eq!(target(&agent, "web", "127.0.0.1:30053"), None, "UDP");
    }
}

#[tokio::test(start_paused = true)]
async fn a_socket_has_the_cluster_ip_of_its_family_and_the_owner_of_the_node_port() {
    let mut agent = node(&["localhost"]);
    let Object::Service(mut dual) = with_node_ports("a", "10.96.0.1") else {
        panic!("a Service")
    };
    let v6 = "fd00:10:96::1".parse().unwrap();
    dual.frontends.push(Frontend::cluster_ip(v6));
    dual.frontends.push(Frontend::node_port(Family::V6));
    let dual = Object::Service(dual);
    let late = with_node_ports("b", "10.96.0.2");
    agent.start(vec![dual.clone(), late]).await;
    let of = |service: &str| {
        let sockets = ["127.0.0.1:30080", "[::1]:30080"];
        sockets.map(|socket| target(&agent, service, socket))
    };
    let [v4, v6] = ["10.96.0.1:80", "[fd00:10:96::1]:80"].map(|one| Some(one.to_owned()));
    assert_eq!(of("a"), [v4, v6]);
    assert_eq!(of("b"), [None, None]);

    agent.delete(&dual).await;
    let other = Some("10.96.0.2:80".to_owned());
    assert_eq!(target(&agent, "b", "127.0.0.1:30080"), other);
    assert_eq!(target(&agent, "a", "127.0.0.1:30080"), None);
}
