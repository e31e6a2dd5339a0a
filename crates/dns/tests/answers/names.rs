//! Every kind of name of the specification 1.1.0.

use hickory_proto::op::ResponseCode;
use hickory_proto::rr::{RData, RecordType};

use crate::cluster_of::{CLIENT, Dns, NODES, address, headless, show};

const OTHERS: &str = "---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop}
spec:
  clusterIPs: [10.96.0.10, 'fd00:96::10']
  ports: [{name: http, port: 80}, {name: dns, port: 53, protocol: UDP}]
---
apiVersion: v1
kind: Service
metadata: {name: unnamed, namespace: shop}
spec: {clusterIP: 10.96.0.11, ports: [{port: 80}]}
---
apiVersion: v1
kind: Service
metadata: {name: dns, namespace: shop}
spec:
  clusterIP: 10.96.0.12
  ports: [{name: dns, port: 53, protocol: UDP}, {name: dns-tcp, port: 53}]
---
apiVersion: v1
kind: Service
metadata: {name: away, namespace: shop}
spec: {type: ExternalName, externalName: www.example.com, ports: [{name: http, port: 80}]}
---
apiVersion: v1
kind: Service
metadata: {name: digits, namespace: shop}
spec: {type: ExternalName, externalName: 192.0.2.80}
---
apiVersion: v1
kind: Service
metadata: {name: near, namespace: shop}
spec: {type: ExternalName, externalName: web.shop.svc.cluster.local}
---
apiVersion: v1
kind: Service
metadata: {name: circle, namespace: shop}
spec: {type: ExternalName, externalName: circle.shop.svc.cluster.local}
---
apiVersion: v1
kind: Service
metadata: {name: nowhere, namespace: shop}
spec: {type: ExternalName, externalName: absent.shop.svc.cluster.local}
";

fn dns() -> Dns {
    Dns::of(&format!("{}{OTHERS}", headless("")))
}

#[test]
fn a_cluster_ip_service_has_addresses_ports_and_pointers() {
    let mut dns = dns();
    let web = "web.shop.svc.cluster.local.";
    assert_eq!(dns.ask(web, RecordType::A), ["A 10.96.0.10"]);
    assert_eq!(
        dns.ask("WEB.shop.SVC.cluster.LOCAL.", RecordType::A),
        ["A 10.96.0.10"]
    );
    assert_eq!(dns.ask(web, RecordType::AAAA), ["AAAA fd00:96::10"]);
    assert_eq!(dns.ask(web, RecordType::TXT), ["NODATA"]);
    let http = "_http._tcp.web.shop.svc.cluster.local.";
    assert_eq!(
        dns.ask(http, RecordType::SRV),
        [format!("SRV 0 1 80 {web}")]
    );
    assert_eq!(dns.ask(http, RecordType::A), ["NODATA"]);
    let answer = dns.ask_from(CLIENT, http, RecordType::SRV).unwrap();
    let additionals: Vec<_> = answer.additionals.iter().map(show).collect();
    assert_eq!(additionals, ["A 10.96.0.10", "AAAA fd00:96::10"]);
    let udp = "_dns._udp.web.shop.svc.cluster.local.";
    assert_eq!(dns.ask(udp, RecordType::SRV), [format!("SRV 0 1 53 {web}")]);
    for absent in ["_http._udp", "_admin._tcp", "web"] {
        let name = format!("{absent}.web.shop.svc.cluster.local.");
        assert_eq!(dns.ask(&name, RecordType::SRV), ["NXDOMAIN"], "{name}");
    }
    let both = "dns.shop.svc.cluster.local.";
    assert_eq!(
        dns.ask(both, RecordType::SRV),
        [format!("SRV 0 1 53 {both}")]
    );
    let unnamed = "_._tcp.unnamed.shop.svc.cluster.local.";
    assert_eq!(dns.ask(unnamed, RecordType::SRV), ["NXDOMAIN"]);
    let pointer = "10.0.96.10.in-addr.arpa.";
    assert_eq!(dns.ask(pointer, RecordType::PTR), [format!("PTR {web}")]);
    assert_eq!(dns.ask(pointer, RecordType::A), ["not ours"]);
    let v6 = "0.1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.6.9.0.0.0.0.d.f.ip6.arpa.";
    assert_eq!(dns.ask(v6, RecordType::PTR), [format!("PTR {web}")]);
}

/// They keep node proxies from a Service. Kubernetes copies the first to the slices of headless Services.
#[test]
fn labels_for_node_proxies_do_not_keep_a_service_from_dns() {
    for label in ["headless: ''", "service-proxy-name: x"] {
        let label = format!("service.kubernetes.io/{label}");
        let yaml = [("web", "10.96.0.10"), ("cart", "None")].map(|(name, cluster_ip)| {
            format!(
                "---
apiVersion: v1
kind: Service
metadata: {{name: {name}, namespace: shop, labels: {{{label}}}}}
spec: {{clusterIP: {cluster_ip}, ports: [{{name: http, port: 80}}]}}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {{name: {name}-1, namespace: shop, labels: {{kubernetes.io/service-name: {name}, {label}}}}}
addressType: IPv4
ports: [{{name: http, port: 8080}}]
endpoints: [{{addresses: [10.244.1.10], hostname: pod}}]
"
            )
        });
        let mut dns = Dns::of(&yaml.concat());
        for (name, address) in [
            ("web", "10.96.0.10"),
            ("cart", "10.244.1.10"),
            ("pod.web", "10.244.1.10"),
        ] {
            let name = format!("{name}.shop.svc.cluster.local.");
            let expected = format!("A {address}");
            assert_eq!(dns.ask(&name, RecordType::A), [expected], "{name} {label}");
        }
    }
}

#[test]
fn an_endpoint_has_its_hostname_or_its_address_as_name() {
    let mut dns = dns();
    let cart = "cart.shop.svc.cluster.local.";
    let all = ["A 10.244.1.10", "A 10.244.2.10", "A 10.244.3.10"];
    assert_eq!(dns.ask(cart, RecordType::A), all);
    assert_eq!(dns.ask(cart, RecordType::AAAA), ["NODATA"]);
    assert_eq!(
        dns.ask(&format!("cart-0.{cart}"), RecordType::A),
        ["A 10.244.1.10"]
    );
    assert_eq!(
        dns.ask(&format!("cart-0.{cart}"), RecordType::AAAA),
        ["NODATA"]
    );
    assert_eq!(
        dns.ask(&format!("10-244-2-10.{cart}"), RecordType::A),
        ["A 10.244.2.10"]
    );
    for absent in ["10-244-1-10", "10-244-9-9", "cart-1"] {
        let name = format!("{absent}.{cart}");
        assert_eq!(dns.ask(&name, RecordType::A), ["NXDOMAIN"], "{name}");
    }
    let ports =
        ["10-244-2-10", "10-244-3-10", "cart-0"].map(|host| format!("SRV 0 1 8080 {host}.{cart}"));
    assert_eq!(
        dns.ask(&format!("_http._tcp.{cart}"), RecordType::SRV),
        ports
    );
    assert_eq!(dns.ask(cart, RecordType::SRV), ports);
    let answer = dns
        .ask_from(CLIENT, &format!("_http._tcp.{cart}"), RecordType::SRV)
        .unwrap();
    let targets: Vec<_> = answer
        .additionals
        .iter()
        .map(|record| record.name.to_ascii())
        .collect();
    let addresses: Vec<_> = answer.additionals.iter().filter_map(address).collect();
    assert_eq!((targets.len(), addresses.len()), (3, 3));
    let pointer = "10.1.244.10.in-addr.arpa.";
    assert_eq!(
        dns.ask(pointer, RecordType::PTR),
        [format!("PTR cart-0.{cart}")]
    );
    let pointer = "10.2.244.10.in-addr.arpa.";
    assert_eq!(
        dns.ask(pointer, RecordType::PTR),
        [format!("PTR 10-244-2-10.{cart}")]
    );
}

#[test]
fn an_external_name_is_an_alias_and_is_followed_inside_the_cluster() {
    let mut dns = dns();
    let away = "away.shop.svc.cluster.local.";
    for asked in [RecordType::A, RecordType::AAAA, RecordType::CNAME] {
        assert_eq!(dns.ask(away, asked), ["CNAME www.example.com."]);
    }
    let answer = dns.ask_from(CLIENT, away, RecordType::A).unwrap();
    assert_eq!(answer.alias.unwrap().to_ascii(), "www.example.com.");
    let near = "near.shop.svc.cluster.local.";
    let web = "CNAME web.shop.svc.cluster.local.";
    assert_eq!(dns.ask(near, RecordType::A), ["A 10.96.0.10", web]);
    assert_eq!(dns.ask(near, RecordType::CNAME), [web]);
    assert_eq!(
        dns.ask_from(CLIENT, near, RecordType::A).unwrap().alias,
        None
    );
    let circle = dns.ask("circle.shop.svc.cluster.local.", RecordType::A);
    assert_eq!(circle, ["CNAME circle.shop.svc.cluster.local."]);
    let nowhere = dns.ask_from(CLIENT, "nowhere.shop.svc.cluster.local.", RecordType::A);
    let nowhere = nowhere.unwrap();
    assert_eq!(nowhere.code, ResponseCode::NXDomain);
    assert!(nowhere.records.len() == 1 && nowhere.soa.is_some());
}

#[test]
fn an_empty_external_name_is_a_name_without_records() {
    for external_name in ["", ", externalName: ''", ", externalName: '.'"] {
        let mut dns = Dns::of(&format!(
            "
apiVersion: v1
kind: Service
metadata: {{name: away, namespace: shop}}
spec: {{type: ExternalName{external_name}}}
"
        ));
        for asked in [RecordType::A, RecordType::CNAME] {
            let found = dns.ask("away.shop.svc.cluster.local.", asked);
            assert_eq!(found, ["NODATA"], "{external_name} {asked}");
        }
    }
}

/// A Service that had a selector before keeps its slices for a while.
#[test]
fn an_external_name_has_no_endpoints() {
    let yaml = headless("").replace(
        "{clusterIP: None, ports: [{name: http, port: 80}]}",
        "{type: ExternalName, externalName: www.example.com, publishNotReadyAddresses: true}",
    );
    let mut dns = Dns::of(&yaml);
    for endpoint in ["cart-0", "10-244-2-10"] {
        let name = format!("{endpoint}.cart.shop.svc.cluster.local.");
        assert_eq!(dns.ask(&name, RecordType::A), ["NXDOMAIN"], "{name}");
    }
    for address in ["10.1.244.10", "10.2.244.10"] {
        let pointer = format!("{address}.in-addr.arpa.");
        assert_eq!(
            dns.ask(&pointer, RecordType::PTR),
            ["not ours"],
            "{pointer}"
        );
    }
}

#[test]
fn names_above_others_exist_without_records_and_all_others_do_not_exist() {
    let mut dns = dns();
    for branch in [
        "svc",
        "pod",
        "shop.svc",
        "shop.pod",
        "_tcp.web.shop.svc",
        "_udp.web.shop.svc",
        "_tcp.cart.shop.svc",
    ] {
        let name = format!("{branch}.cluster.local.");
        assert_eq!(dns.ask(&name, RecordType::A), ["NODATA"], "{name}");
    }
    for absent in [
        "x",
        "bank.svc",
        "x.shop.svc",
        "_tcp.x.shop.svc",
        "_sctp.web.shop.svc",
        "_udp.cart.shop.svc",
        "_tcp.unnamed.shop.svc",
        "_tcp.away.shop.svc",
        "_http._tcp.away.shop.svc",
        "digits.shop.svc",
        "shop",
        "a.b.c.web.shop.svc",
        "*",
        "*.svc",
        "*.shop.svc",
        "*.web.shop.svc",
        "*.cart.shop.svc",
    ] {
        let name = format!("{absent}.cluster.local.");
        for asked in [RecordType::A, RecordType::SOA] {
            assert_eq!(dns.ask(&name, asked), ["NXDOMAIN"], "{name} {asked}");
        }
    }
}

#[test]
fn the_domain_has_its_version_and_the_names_of_pods_and_no_other_domain() {
    let mut dns = dns();
    assert_eq!(dns.ask("cluster.local.", RecordType::A), ["NODATA"]);
    let soa = dns.ask("cluster.local.", RecordType::SOA);
    assert!(
        soa[0].starts_with("SOA ns.dns.cluster.local. hostmaster.cluster.local. "),
        "{soa:?}"
    );
    assert_eq!(
        dns.ask("dns-version.cluster.local.", RecordType::TXT),
        ["TXT 1.1.0"]
    );
    assert_eq!(
        dns.ask("dns-version.cluster.local.", RecordType::A),
        ["NODATA"]
    );
    assert_eq!(
        dns.ask("10-1-2-3.shop.pod.cluster.local.", RecordType::A),
        ["A 10.1.2.3"]
    );
    assert_eq!(
        dns.ask("10-1-2-3.shop.pod.cluster.local.", RecordType::AAAA),
        ["NODATA"]
    );
    for other in [
        "example.com.",
        "9.9.9.9.in-addr.arpa.",
        "96.10.in-addr.arpa.",
        ".",
    ] {
        assert_eq!(dns.ask(other, RecordType::PTR), ["not ours"], "{other}");
    }
}

#[test]
fn a_headless_service_without_a_ready_endpoint_does_not_exist_unless_it_publishes_them() {
    let yaml = |published: &str, conditions: &str| {
        format!(
            "{NODES}---
apiVersion: v1
kind: Service
metadata: {{name: cart, namespace: shop}}
spec: {{clusterIP: None{published}}}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {{name: cart-1, namespace: shop, labels: {{kubernetes.io/service-name: cart}}}}
addressType: IPv4
ports: []
endpoints: [{{addresses: [10.244.1.10], hostname: cart-0, conditions: {{{conditions}}}}}]
"
        )
    };
    let names = ["cart", "cart-0.cart"].map(|name| format!("{name}.shop.svc.cluster.local."));
    let unready = "ready: false, serving: false";
    for (published, conditions, expected) in [
        ("", unready, "NXDOMAIN"),
        (", publishNotReadyAddresses: true", unready, "A 10.244.1.10"),
        ("", "ready: true", "A 10.244.1.10"),
        (
            "",
            "ready: false, serving: true, terminating: true",
            "A 10.244.1.10",
        ),
    ] {
        let mut dns = Dns::of(&yaml(published, conditions));
        for name in &names {
            assert_eq!(
                dns.ask(name, RecordType::A),
                [expected],
                "{name} {conditions}"
            );
        }
        let pointer = dns.ask("10.1.244.10.in-addr.arpa.", RecordType::PTR);
        assert_eq!(
            pointer == ["not ours"],
            expected == "NXDOMAIN",
            "{pointer:?}"
        );
    }
}

#[test]
fn several_slices_of_both_families_are_one_service_and_a_pod_has_one_name() {
    let slice = |name: &str, family: &str, address: &str| {
        format!(
            "---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {{name: {name}, namespace: shop, labels: {{kubernetes.io/service-name: cart}}}}
addressType: {family}
ports: [{{name: http, port: 8080}}]
endpoints: [{{addresses: ['{address}'], nodeName: n1, hostname: cart-0}}]
"
        )
    };
    let more = slice("cart-2", "IPv4", "10.244.1.11");
    let v6 = slice("cart-6", "IPv6", "fd00:1::10");
    let mut dns = Dns::of(&format!("{}{more}{v6}", headless("")));
    let pod = "cart-0.cart.shop.svc.cluster.local.";
    assert_eq!(
        dns.ask(pod, RecordType::A),
        ["A 10.244.1.10", "A 10.244.1.11"]
    );
    assert_eq!(dns.ask(pod, RecordType::AAAA), ["AAAA fd00:1::10"]);
    assert_eq!(
        dns.ask("cart.shop.svc.cluster.local.", RecordType::A).len(),
        4
    );
    assert_eq!(
        dns.ask("cart.shop.svc.cluster.local.", RecordType::AAAA)
            .len(),
        1
    );
    let ports = dns.ask("_http._tcp.cart.shop.svc.cluster.local.", RecordType::SRV);
    let of_pod = ports.iter().filter(|record| record.ends_with(pod));
    assert_eq!((ports.len(), of_pod.count()), (3, 1));
}

#[test]
fn a_port_without_an_endpoint_has_no_name_and_an_address_is_an_additional_record_once() {
    let mut dns = Dns::of(
        "
apiVersion: v1
kind: Service
metadata: {name: cart, namespace: shop}
spec: {clusterIP: None, ports: [{name: http, port: 80}, {name: tls, port: 443}, {name: dns, port: 53, protocol: UDP}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: cart-1, namespace: shop, labels: {kubernetes.io/service-name: cart}}
addressType: IPv6
ports: [{name: http, port: 8080}, {name: tls, port: 8443}]
endpoints: [{addresses: ['fd00:1::']}]
",
    );
    let cart = "cart.shop.svc.cluster.local.";
    let pod = format!("fd00-1--0.{cart}");
    assert_eq!(dns.ask(&pod, RecordType::AAAA), ["AAAA fd00:1::"]);
    let other_spelling = format!("fd00-1-0-0-0-0-0-0.{cart}");
    assert_eq!(dns.ask(&other_spelling, RecordType::AAAA), ["NXDOMAIN"]);
    for absent in ["_dns._udp", "_udp"] {
        let name = format!("{absent}.{cart}");
        assert_eq!(dns.ask(&name, RecordType::SRV), ["NXDOMAIN"], "{name}");
    }
    let answer = dns.ask_from(CLIENT, cart, RecordType::SRV).unwrap();
    assert_eq!((answer.records.len(), answer.additionals.len()), (2, 1));
}

/// As Kubernetes' test "should provide DNS for a service with multiple EndpointSlices and no Endpoints".
#[test]
fn the_ports_of_a_headless_service_are_those_of_its_slices() {
    let slice = |number: u8, port: &str| {
        format!(
            "---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {{name: cart-{number}, namespace: shop, labels: {{kubernetes.io/service-name: cart}}}}
addressType: IPv4
ports: [{port}]
endpoints: [{{addresses: [10.244.1.{number}]}}]
"
        )
    };
    let service = |ports: &str| {
        format!(
            "
apiVersion: v1
kind: Service
metadata: {{name: cart, namespace: shop}}
spec: {{clusterIP: None, ports: [{ports}]}}
{}{}",
            slice(1, "{name: http, port: 80}"),
            slice(2, "{name: https, port: 443}")
        )
    };
    let cart = "cart.shop.svc.cluster.local.";
    let ports = [("http", "10-244-1-1", 80), ("https", "10-244-1-2", 443)];
    for own in ["{name: http, port: 80}", ""] {
        let mut dns = Dns::of(&service(own));
        let mut all = Vec::new();
        for (name, pod, number) in ports {
            let record = format!("SRV 0 1 {number} {pod}.{cart}");
            let asked = format!("_{name}._tcp.{cart}");
            assert_eq!(dns.ask(&asked, RecordType::SRV), [&*record], "{own}");
            let other = format!("_{name}._udp.{cart}");
            assert_eq!(dns.ask(&other, RecordType::SRV), ["NXDOMAIN"], "{own}");
            all.push(record);
        }
        all.sort();
        assert_eq!(dns.ask(cart, RecordType::SRV), all, "{own}");
        let other = format!("_other._tcp.{cart}");
        assert_eq!(dns.ask(&other, RecordType::SRV), ["NXDOMAIN"], "{own}");
    }
}

/// A headless Service `cart` with so many ports and endpoints.
fn large(ports: u16, endpoints: u8) -> Dns {
    let ports = (1..=ports).map(|number| format!("{{name: p{number}, port: {number}}}"));
    let ports = ports.collect::<Vec<_>>().join(", ");
    let endpoints = (1..=endpoints).map(|number| format!("{{addresses: [10.244.1.{number}]}}"));
    let endpoints = endpoints.collect::<Vec<_>>().join(", ");
    Dns::of(&format!(
        "
apiVersion: v1
kind: Service
metadata: {{name: cart, namespace: shop}}
spec: {{clusterIP: None}}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {{name: cart-1, namespace: shop, labels: {{kubernetes.io/service-name: cart}}}}
addressType: IPv4
ports: [{ports}]
endpoints: [{endpoints}]
"
    ))
}

#[test]
fn an_answer_has_no_more_records_than_a_message() {
    let cart = "cart.shop.svc.cluster.local.";
    let mut dns = large(100, 80);
    let answer = dns.ask_from(CLIENT, cart, RecordType::SRV).unwrap();
    // One more than fits into 65,535 bytes, so that the reply is truncated: all ports of 59 endpoints, and 58 of another.
    assert_eq!(answer.records.len(), 5_958);
    assert_eq!(answer.additionals.len(), 60);
    let one = dns.ask(&format!("_p7._tcp.{cart}"), RecordType::SRV);
    assert_eq!(one.len(), 80);
    assert_eq!(dns.ask(cart, RecordType::A).len(), 80);

    let mut dns = large(6_000, 1);
    assert_eq!(dns.ask(cart, RecordType::SRV).len(), 5_958);
    let last = dns.ask(&format!("_p6000._tcp.{cart}"), RecordType::SRV);
    assert_eq!(last, [format!("SRV 0 1 6000 10-244-1-1.{cart}")]);
}

#[test]
fn a_name_has_the_ports_of_the_endpoints_that_it_has_addresses_of() {
    let slice = |number: u8, conditions: &str| {
        format!(
            "---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {{name: cart-{number}, namespace: shop, labels: {{kubernetes.io/service-name: cart}}}}
addressType: IPv4
ports: [{{name: p{number}, port: 8{number}}}, {{name: q{number}, port: 9{number}}}]
endpoints:
- {{addresses: [10.244.{number}.1], nodeName: n{number}, conditions: {{{conditions}}}}}
- {{addresses: [10.244.{number}.2], nodeName: n{number}, conditions: {{ready: false}}}}
"
        )
    };
    let terminating = "ready: false, serving: true, terminating: true";
    let mut dns = Dns::of(&format!(
        "{NODES}---
apiVersion: v1
kind: Service
metadata: {{name: cart, namespace: shop, annotations: {{topology.ipvs-topo.io/keys: 'node,*'}}}}
spec: {{clusterIP: None}}
{}{}{}",
        slice(1, "ready: true"),
        slice(2, "ready: true"),
        slice(3, terminating)
    ));
    let cart = "cart.shop.svc.cluster.local.";
    assert_eq!(dns.ask(cart, RecordType::A), ["A 10.244.1.1"]);
    // Ports and targets, without weights.
    let mut ports = |name: &str| -> Vec<String> {
        let answer = dns.ask_from(CLIENT, name, RecordType::SRV).unwrap();
        let found = answer.records.iter().map(|record| match &record.data {
            RData::SRV(srv) => format!("{} {}", srv.port, srv.target),
            other => other.to_string(),
        });
        let mut found: Vec<String> = found.collect();
        found.sort();
        found
    };
    assert_eq!(
        ports(cart),
        [81, 91].map(|port| format!("{port} 10-244-1-1.{cart}"))
    );
    // The name of a port is decided for the endpoints with this port.
    for (port, expected) in [("p2", "82 10-244-2-1"), ("q3", "93 10-244-3-1")] {
        let name = format!("_{port}._tcp.{cart}");
        assert_eq!(ports(&name), [format!("{expected}.{cart}")]);
    }
}

#[test]
fn ports_with_one_number_are_one_record() {
    let cart = "cart.shop.svc.cluster.local.";
    let mut dns = Dns::of(&format!(
        "{}---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {{name: cart-2, namespace: shop, labels: {{kubernetes.io/service-name: cart}}}}
addressType: IPv4
ports: [{{name: a, port: 80}}, {{name: b, port: 80}}, {{name: c, port: 80, protocol: UDP}}]
endpoints: [{{addresses: [10.244.2.11]}}]
",
        headless("")
    ));
    let ports = dns.ask(cart, RecordType::SRV);
    let of_pod = ports.iter().filter(|record| record.contains("10-244-2-11"));
    assert!(of_pod.eq([&format!("SRV 0 1 80 10-244-2-11.{cart}")]));
    assert_eq!(ports.len(), 4);
}

#[test]
fn endpoints_that_share_an_address_keep_their_hostnames() {
    let mut dns = Dns::of(
        "
apiVersion: v1
kind: Service
metadata: {name: db, namespace: shop}
spec: {clusterIP: None, ports: [{name: sql, port: 5432}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: db-1, namespace: shop, labels: {kubernetes.io/service-name: db}}
addressType: IPv4
ports: [{name: sql, port: 5432}]
endpoints:
- {addresses: [192.0.2.1], nodeName: n1, hostname: db-0}
- {addresses: [192.0.2.1], nodeName: n1, hostname: db-1}
- {addresses: [192.0.2.1], nodeName: n1, hostname: db-2, conditions: {ready: false}}
",
    );
    let db = "db.shop.svc.cluster.local.";
    assert_eq!(dns.ask(db, RecordType::A), ["A 192.0.2.1"]);
    for (host, expected) in [
        ("db-0", "A 192.0.2.1"),
        ("db-1", "A 192.0.2.1"),
        ("db-2", "NXDOMAIN"),
        ("192-0-2-1", "NXDOMAIN"),
    ] {
        let name = format!("{host}.{db}");
        assert_eq!(dns.ask(&name, RecordType::A), [expected], "{name}");
    }
    let published = ["db-0", "db-1"];
    let ports = published.map(|host| format!("SRV 0 1 5432 {host}.{db}"));
    assert_eq!(dns.ask(db, RecordType::SRV), ports);
    let answer = dns.ask_from(CLIENT, db, RecordType::SRV).unwrap();
    assert_eq!(answer.additionals.len(), 2);
    let pointers = published.map(|host| format!("PTR {host}.{db}"));
    let pointer = "1.2.0.192.in-addr.arpa.";
    assert_eq!(dns.ask(pointer, RecordType::PTR), pointers);
}
