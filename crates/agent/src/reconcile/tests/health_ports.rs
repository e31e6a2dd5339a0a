//! Health check ports: what the loop publishes for load balancers.

use std::net::SocketAddr;
use std::num::NonZeroU16;

use cluster::object::Object;
use dataplane::nftables::{Element, SetId};
use dataplane::routes::addresses::Interface;
use topology_core::model::{Frontend, NodePortEntry, ObjectName, Protocol, TrafficPolicy};

use super::TCP;
use super::fake::Shared;
use super::script::{Loop, added, service, slice};

const OUTSIDE: &str = "192.0.2.1";

/// A Service of a load balancer that checks the port.
fn checked(port: u16) -> Object {
    let Object::Service(mut checked) = service("web", "10.96.0.1", TCP) else {
        panic!("a Service")
    };
    let outside = OUTSIDE.parse().unwrap();
    checked.frontends.push(Frontend::load_balancer(outside));
    checked.external_traffic_policy = TrafficPolicy::Local;
    checked.health_check_node_port = NonZeroU16::new(port);
    Object::Service(checked)
}

/// The published number of local endpoints; `None` if the port is not open.
fn count(agent: &Loop, socket: &str) -> Option<usize> {
    let socket: SocketAddr = socket.parse().unwrap();
    let place = (ObjectName::new("t", "web"), socket);
    agent.reconciler.health_ports.get(&place)
}

/// Whether packets to the port at an address of the Service reach the agent.
fn is_accepted(agent: &Loop, port: u16) -> bool {
    let listener = Element::Listener(OUTSIDE.parse().unwrap(), Protocol::Tcp, port);
    agent.world().tables.contains(SetId::Health, &listener)
}

/// KP-HC-14
#[tokio::test(start_paused = true)]
async fn the_count_follows_endpoints_and_the_port_its_service() {
    let mut agent = Loop::over(&Shared::default());
    let endpoints = |list: &[&str]| slice("web", TCP, list);
    agent
        .start(vec![checked(30999), endpoints(&["10.244.1.1@n1"])])
        .await;
    assert_eq!(count(&agent, "0.0.0.0:30999"), Some(1));
    assert_eq!(count(&agent, "[::]:30999"), None, "no IPv6 cluster IP");
    assert!(is_accepted(&agent, 30999));

    let both = ["10.244.1.1@n1", "10.244.1.2@n1", "10.244.2.1@n2"];
    agent.apply([endpoints(&both)]).await;
    assert_eq!(count(&agent, "0.0.0.0:30999"), Some(2));
    agent.apply([endpoints(&["10.244.2.1@n2"])]).await;
    assert_eq!(count(&agent, "0.0.0.0:30999"), Some(0));

    agent.apply([checked(31999)]).await;
    assert_eq!(count(&agent, "0.0.0.0:30999"), None);
    assert_eq!(count(&agent, "0.0.0.0:31999"), Some(0));
    assert!(is_accepted(&agent, 31999) && !is_accepted(&agent, 30999));

    agent.delete(&checked(31999)).await;
    assert_eq!(count(&agent, "0.0.0.0:31999"), None);
    assert!(!is_accepted(&agent, 31999));
}

/// KP-HC-13
#[tokio::test(start_paused = true)]
async fn ports_are_open_at_the_selected_addresses_and_follow_them() {
    let shared = Shared::default();
    let mut agent = Loop::with(&shared, |config| {
        let range = "192.168.1.0/24".parse().unwrap();
        config.node_port_addresses = [range].into_iter().collect();
    });
    agent.start(vec![checked(30999)]).await;
    assert_eq!(count(&agent, "192.168.1.1:30999"), None);

    agent.world().addresses = vec![Interface {
        link: "eth0".to_owned(),
        address: "192.168.1.1".parse().unwrap(),
        prefix: 24,
        global: true,
    }];
    agent.reconciler.addresses_moved(&added()).await;
    assert_eq!(count(&agent, "192.168.1.1:30999"), Some(0));
    assert_eq!(count(&agent, "0.0.0.0:30999"), None);
}

/// KP-HC-13
#[tokio::test(start_paused = true)]
async fn localhost_opens_the_ports_at_loopback_addresses_as_kube_proxy_does() {
    let (localhost, all) = (NodePortEntry::Localhost, NodePortEntry::All);
    for (entries, open) in [
        (&[localhost][..], "127.0.0.1:30999"),
        (&[localhost, all], "0.0.0.0:30999"),
    ] {
        let mut agent = Loop::with(&Shared::default(), |config| {
            config.node_port_addresses = entries.iter().copied().collect();
        });
        agent.start(vec![checked(30999)]).await;
        for socket in ["127.0.0.1:30999", "[::1]:30999", "0.0.0.0:30999"] {
            let expected = (socket == open).then_some(0);
            assert_eq!(count(&agent, socket), expected, "{entries:?} {socket}");
        }
    }
}
