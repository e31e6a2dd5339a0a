//! A change of the snapshot changes the next answer.

use hickory_proto::rr::RecordType;
use topology_core::model::{EndpointSlice, Node, NodePods, ObjectName};

use crate::cluster_of::{CLIENT, Dns, headless};

fn cart() -> ObjectName {
    ObjectName::new("shop", "cart")
}

fn slice(dns: &Dns) -> EndpointSlice {
    dns.snapshot.slices(&cart())[0].clone()
}

#[test]
fn endpoints_services_and_nodes_that_change_are_answered_at_once() {
    let mut dns = Dns::of(&headless("topology.ipvs-topo.io/keys: 'node,*'"));
    assert_eq!(dns.addresses(CLIENT), ["10.244.1.10"]);

    let mut changed = slice(&dns);
    changed.endpoints[0].ready = false;
    dns.snapshot.set_slice(changed.clone());
    dns.update();
    let mut others = dns.addresses(CLIENT);
    others.sort();
    assert_eq!(others, ["10.244.2.10", "10.244.3.10"]);

    changed.endpoints[0].ready = true;
    changed.endpoints[0].address = "10.244.1.11".parse().unwrap();
    dns.snapshot.set_slice(changed);
    dns.update();
    assert_eq!(dns.addresses(CLIENT), ["10.244.1.11"]);
    let old = dns.ask("10.1.244.10.in-addr.arpa.", RecordType::PTR);
    assert_eq!(old, ["not ours"]);
    let new = dns.ask("11.1.244.10.in-addr.arpa.", RecordType::PTR);
    assert_eq!(new, ["PTR cart-0.cart.shop.svc.cluster.local."]);

    dns.snapshot.set_node(Node {
        pod_cidrs: vec!["10.244.1.0/24".parse().unwrap()],
        ..Node::new("n2")
    });
    dns.snapshot.remove_node("n1");
    dns.update();
    assert_eq!(dns.node_of(CLIENT), "n2");
    assert_eq!(dns.addresses(CLIENT), ["10.244.2.10"]);

    dns.snapshot.remove_service(&cart());
    dns.update();
    let name = "cart.shop.svc.cluster.local.";
    assert_eq!(dns.ask(name, RecordType::A), ["NXDOMAIN"]);
    let pointer = dns.ask("11.1.244.10.in-addr.arpa.", RecordType::PTR);
    assert_eq!(pointer, ["not ours"]);
}

#[test]
fn a_client_is_found_by_the_pod_map_as_soon_as_it_changes() {
    const POD: &str = "172.16.0.9";
    let mut dns = Dns::of(&headless(""));
    let pods = |node: &str| NodePods {
        node: node.into(),
        pods: [(POD.parse().unwrap(), ObjectName::new("shop", "web"))].into(),
    };
    assert_eq!(dns.place_of(POD), ("n1".to_owned(), 6));
    dns.snapshot.set_node_pods(pods("n3"));
    assert_eq!(dns.place_of(POD), ("n3".to_owned(), 3));
    // The address moves: the first by name has it until the other map follows.
    dns.snapshot.set_node_pods(pods("n2"));
    assert_eq!(dns.place_of(POD), ("n2".to_owned(), 3));
    dns.snapshot.remove_node_pods("n2");
    assert_eq!(dns.place_of(POD), ("n3".to_owned(), 3));
    dns.snapshot.remove_node_pods("n3");
    assert_eq!(dns.place_of(POD), ("n1".to_owned(), 6));
}

#[test]
fn the_serial_counts_the_changes() {
    let mut dns = Dns::of(&headless(""));
    let soa = |dns: &mut Dns| dns.ask("cluster.local.", RecordType::SOA);
    let first = soa(&mut dns);
    dns.update();
    assert_eq!(soa(&mut dns), first);
    dns.snapshot
        .remove_slice(&ObjectName::new("shop", "cart-1"));
    dns.update();
    assert_ne!(soa(&mut dns), first);
}

#[test]
fn a_kubelet_does_not_get_the_clients_of_other_nodes() {
    const OF_N2: &str = "10.244.2.200";
    let mut dns = Dns::of(&headless(""));
    dns.snapshot.set_node(Node {
        addresses: vec![
            CLIENT.parse().unwrap(),
            OF_N2.parse().unwrap(),
            "192.0.2.1".parse().unwrap(),
        ],
        pod_cidrs: vec![format!("{CLIENT}/32").parse().unwrap()],
        ..Node::new("a")
    });
    dns.update();
    for (client, node) in [(CLIENT, "n1"), ("192.0.2.1", "n1"), (OF_N2, "n2")] {
        assert_eq!(dns.node_of(client), node, "{client}");
    }
}
