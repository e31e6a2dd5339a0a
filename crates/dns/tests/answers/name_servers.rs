//! The name servers of the domain, as in `CoreDNS`: the Services that have the server as an endpoint.

use hickory_proto::rr::RecordType;

use crate::cluster_of::{CLIENT, Dns, NODES, show};

const DOMAIN: &str = "cluster.local.";
const SERVER: &str = "ns.dns.cluster.local.";

/// A Service, and a slice with these endpoints and this port.
fn service(name: &str, spec: &str, port: u16, family: &str, endpoints: &str) -> String {
    format!(
        "---
apiVersion: v1
kind: Service
metadata: {{name: {name}, namespace: kube-system}}
spec: {{{spec}, ports: [{{name: dns, port: 53, protocol: UDP}}]}}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {{name: {name}-1, namespace: kube-system, labels: {{kubernetes.io/service-name: {name}}}}}
addressType: {family}
ports: [{{name: dns, port: {port}, protocol: UDP}}]
endpoints: [{endpoints}]
"
    )
}

fn additionals(dns: &mut Dns) -> Vec<String> {
    let answer = dns.ask_from(CLIENT, DOMAIN, RecordType::NS).unwrap();
    let additionals = answer.additionals.iter();
    additionals
        .map(|record| format!("{} {}", record.name, show(record)))
        .collect()
}

#[test]
fn a_service_with_the_server_as_an_endpoint_is_the_name_server() {
    let cluster_ips = "clusterIPs: [10.96.0.10, 'fd00:96::10']";
    let both = "{addresses: [10.244.1.53]}, {addresses: [10.244.2.53]}";
    let unready = "{addresses: [10.244.1.53], conditions: {ready: false}}";
    let mut dns = Dns::of(&format!(
        "{NODES}{}{}{}{}",
        service("kube-dns", cluster_ips, 53, "IPv4", both),
        service("metrics", "clusterIP: 10.96.0.11", 9153, "IPv4", both),
        service("unready", "clusterIP: 10.96.0.12", 53, "IPv4", unready),
        service(
            "other",
            "clusterIP: 10.96.0.13",
            53,
            "IPv4",
            "{addresses: [10.244.2.53]}"
        ),
    ));
    let name = "kube-dns.kube-system.svc.cluster.local.";
    assert_eq!(dns.ask(DOMAIN, RecordType::NS), [format!("NS {name}")]);
    assert_eq!(
        additionals(&mut dns),
        [
            format!("{name} A 10.96.0.10"),
            format!("{name} AAAA fd00:96::10")
        ]
    );
    assert_eq!(dns.ask(SERVER, RecordType::A), ["A 10.96.0.10"]);
    assert_eq!(dns.ask(SERVER, RecordType::AAAA), ["AAAA fd00:96::10"]);
    for other in [RecordType::NS, RecordType::TXT, RecordType::SOA] {
        assert_eq!(dns.ask(SERVER, other), ["NODATA"], "{other}");
    }
    assert_eq!(dns.ask(name, RecordType::NS), ["NODATA"]);
}

#[test]
fn in_a_headless_service_the_endpoint_is_the_name_server() {
    let endpoints = "{addresses: ['fd00:1::53'], hostname: one}, {addresses: ['fd00:2::53']}";
    let mut dns = Dns::of(&service("dns", "clusterIP: None", 53, "IPv6", endpoints));
    let name = "one.dns.kube-system.svc.cluster.local.";
    assert_eq!(dns.ask(DOMAIN, RecordType::NS), [format!("NS {name}")]);
    assert_eq!(additionals(&mut dns), [format!("{name} AAAA fd00:1::53")]);
    assert_eq!(dns.ask(SERVER, RecordType::AAAA), ["AAAA fd00:1::53"]);
    assert_eq!(dns.ask(SERVER, RecordType::A), ["NODATA"]);
}

#[test]
fn without_a_service_the_server_itself_is_the_name_server() {
    let mut dns = Dns::of(NODES);
    assert_eq!(dns.ask(DOMAIN, RecordType::NS), [format!("NS {SERVER}")]);
    assert_eq!(
        additionals(&mut dns),
        [
            format!("{SERVER} A 10.244.1.53"),
            format!("{SERVER} AAAA fd00:1::53")
        ]
    );
    assert_eq!(dns.ask(SERVER, RecordType::A), ["A 10.244.1.53"]);
    assert_eq!(dns.ask("dns.cluster.local.", RecordType::A), ["NODATA"]);
}
