//! Headless Services follow the topology of the client's node.

use crate::cluster_of::{CLIENT, DRAIN, Dns, NODES, NOW, headless};
use hickory_proto::rr::RecordType;
use topology_core::model::ObjectName;

const N1: &str = "10.244.1.200";
const N3: &str = "10.244.3.200";

#[test]
fn the_answer_depends_on_the_node_of_the_client() {
    let mut dns = Dns::of(&headless("topology.ipvs-topo.io/keys: 'node,zone,*'"));
    for (client, expected) in [
        (N1, "10.244.1.10"),
        ("10.244.2.200", "10.244.2.10"),
        (N3, "10.244.3.10"),
        // Host networks: by the address of the Node.
        ("192.0.2.3", "10.244.3.10"),
        // Unknown clients are on the node of the server.
        ("127.0.0.1", "10.244.1.10"),
        ("fd00:3::1", "10.244.3.10"),
    ] {
        assert_eq!(dns.addresses(client), [expected], "{client}");
    }
}

/// Pods on n2: with an address outside of all ranges, with one in the range of n1, and with one of Node n3.
const PODS: &str = "---
apiVersion: topology.ipvs-topo.io/v1alpha1
kind: PodMap
metadata: {name: n2}
spec: {pods: {172.16.0.2: shop/web-1, 10.244.1.77: shop/web-2, 192.0.2.3: shop/web-3}}
";

#[test]
fn a_client_outside_of_pod_ranges_is_found_as_a_pod_or_an_endpoint() {
    let yaml = headless("").replace("10.244.3.10", "172.16.0.3") + PODS;
    let dns = Dns::of(&yaml);
    for (client, node, rule) in [
        ("10.244.1.77", "n1", 1),
        ("192.0.2.1", "n1", 1),
        ("10.244.2.77", "n2", 2),
        ("172.16.0.2", "n2", 3),
        ("192.0.2.3", "n2", 3),
        ("192.0.2.2", "n2", 4),
        ("172.16.0.3", "n3", 5),
        ("172.16.0.4", "n1", 6),
    ] {
        let expected = (node.to_owned(), rule);
        assert_eq!(dns.place_of(client), expected, "{client}");
    }
}

#[test]
fn a_hard_policy_without_an_endpoint_here_has_no_data() {
    let yaml = headless("topology.ipvs-topo.io/keys: 'zone'")
        .replace("- {addresses: [10.244.3.10], nodeName: n3}\n", "");
    let mut dns = Dns::of(&yaml);
    assert_eq!(dns.addresses(N3), [""; 0]);
    let answer = dns
        .ask_from(N3, "cart.shop.svc.cluster.local.", RecordType::A)
        .unwrap();
    assert_eq!(answer.code, hickory_proto::op::ResponseCode::NoError);
    let mut near = dns.addresses(N1);
    near.sort();
    assert_eq!(near, ["10.244.1.10", "10.244.2.10"]);
    // Who asks for just one pod gets it.
    let pod = dns.ask_from(N3, "cart-0.cart.shop.svc.cluster.local.", RecordType::A);
    assert_eq!(pod.unwrap().records.len(), 1);
}

#[test]
fn both_families_and_the_ports_are_answered_from_the_same_level() {
    let slice = |family: &str, near: &str, far: &str| {
        format!(
            "---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {{name: cart-{}, namespace: shop, labels: {{kubernetes.io/service-name: cart}}}}
addressType: {family}
ports: [{{name: http, port: 8080}}]
endpoints:
- {{addresses: ['{near}'], nodeName: n1, hostname: near}}
- {{addresses: ['{far}'], nodeName: n2, hostname: far}}
",
            family.to_lowercase()
        )
    };
    // The nearer endpoint has the first IPv4 address, and the last IPv6 address.
    let mut dns = Dns::of(&format!(
        "{NODES}---
apiVersion: v1
kind: Service
metadata: {{name: cart, namespace: shop, annotations: {{topology.ipvs-topo.io/weights: 'node=80,*=20'}}}}
spec: {{clusterIP: None, ports: [{{name: http, port: 80}}]}}
{}{}",
        slice("IPv4", "10.244.1.20", "10.244.2.10"),
        slice("IPv6", "fd00:1::10", "fd00::2")
    ));
    let cart = "cart.shop.svc.cluster.local.";
    let mut near = 0;
    for _ in 0..20 {
        let v4 = dns.ask(cart, RecordType::A);
        let (host, v6) = if v4 == ["A 10.244.1.20"] {
            near += 1;
            ("near", "AAAA fd00:1::10")
        } else {
            assert_eq!(v4, ["A 10.244.2.10"]);
            ("far", "AAAA fd00::2")
        };
        assert_eq!(dns.ask(cart, RecordType::AAAA), [v6]);
        let ports = dns.ask(cart, RecordType::SRV);
        let target = format!(" 8080 {host}.{cart}");
        assert!(ports.len() == 1 && ports[0].ends_with(&target), "{ports:?}");
    }
    assert!((14..=18).contains(&near), "{near} of 20");
}

#[test]
fn drains_and_hints_apply() {
    let mut dns = Dns::of(&format!("{}{DRAIN}", headless("")));
    let mut left = dns.addresses(N3);
    left.sort();
    assert_eq!(left, ["10.244.1.10", "10.244.2.10"]);

    let mut yaml = headless("");
    for (node, zone) in [("n1, hostname: cart-0", "a"), ("n2", "a"), ("n3", "b")] {
        let hint = format!("nodeName: {node}, hints: {{forZones: [{{name: {zone}}}]}}}}");
        yaml = yaml.replace(&format!("nodeName: {node}}}"), &hint);
    }
    let mut dns = Dns::of(&yaml);
    assert_eq!(dns.addresses(N3), ["10.244.3.10"]);
    let mut near = dns.addresses(CLIENT);
    near.sort();
    assert_eq!(near, ["10.244.1.10", "10.244.2.10"]);
}

/// How many of 400 answers on n1 begin with this address.
fn firsts(dns: &mut Dns, address: &str) -> usize {
    let answers = (0..400).map(|_| dns.addresses(CLIENT));
    answers.filter(|answer| answer[0] == address).count()
}

#[test]
fn a_new_endpoint_starts_slowly_and_gets_its_share_in_time() {
    let policy = "topology.ipvs-topo.io/keys: '*', topology.ipvs-topo.io/slow-start: '100'";
    let mut dns = Dns::of(&headless(policy));
    let old = firsts(&mut dns, "10.244.1.10");
    assert!((130..=137).contains(&old), "{old} of 400");

    let cart = ObjectName::new("shop", "cart");
    let mut slice = dns.snapshot.slices(&cart)[0].clone();
    slice.endpoints[0].address = "10.244.1.11".parse().unwrap();
    dns.snapshot.set_slice(slice);
    dns.update();
    let mut shares = Vec::new();
    for seconds in [1, 50, 200] {
        dns.now = NOW + seconds * 1_000;
        shares.push(firsts(&mut dns, "10.244.1.11"));
    }
    assert!(shares[0] < 30, "{shares:?}");
    assert!((50..120).contains(&shares[1]), "{shares:?}");
    assert!((130..=137).contains(&shares[2]), "{shares:?}");
}
