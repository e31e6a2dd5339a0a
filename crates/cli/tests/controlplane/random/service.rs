//! Random Services of every kind.

use serde_json::{Map, Value, json};

use super::{Dice, NAMESPACE, node_address};

/// Annotations of Services.
const ASKED: [(&str, &str); 6] = [
    ("weights", "node=80,zone=15,*=5"),
    ("weights", "zone=90,*=10"),
    ("weights", "zone=100,*=0"),
    ("keys", "zone,*"),
    ("keys", "node,zone,region,*"),
    ("policy", "named"),
];

/// Combinations of families; most clusters have one.
pub(crate) const FAMILIES: [&[&str]; 5] = [
    &["IPv4"],
    &["IPv4"],
    &["IPv4", "IPv6"],
    &["IPv6", "IPv4"],
    &["IPv6"],
];

/// `spec.type`, and `Headless`.
const KINDS: [&str; 8] = [
    "ClusterIP",
    "ClusterIP",
    "NodePort",
    "NodePort",
    "LoadBalancer",
    "LoadBalancer",
    "LoadBalancer",
    "Headless",
];

/// The Service number `index` of a cluster.
pub(super) fn service(dice: &mut Dice, index: usize, nodes: usize) -> Value {
    let kind = if dice.is(4) {
        "ExternalName"
    } else {
        dice.of(&KINDS)
    };
    let families = dice.of(&FAMILIES);
    let mut spec = match kind {
        "ExternalName" => json!({"externalName": "example.com"}),
        _ => base(dice, index, kind, families),
    };
    let spec_map = spec.as_object_mut().unwrap();
    let spec_type = if kind == "Headless" {
        "ClusterIP"
    } else {
        kind
    };
    spec_map.insert("type".to_owned(), json!(spec_type));
    let mut status = json!({});
    if !matches!(kind, "ExternalName" | "Headless") {
        external(dice, index, kind, families, spec_map);
    }
    if kind == "LoadBalancer" {
        load_balancer(dice, index, spec_map);
        let ingress = ingress(dice, index, nodes);
        status = json!({"loadBalancer": {"ingress": ingress}});
    }
    json!({
        "apiVersion": "v1", "kind": "Service", "metadata": metadata(dice, index),
        "spec": spec, "status": status,
    })
}

fn metadata(dice: &mut Dice, index: usize) -> Value {
    let mut annotations = Map::new();
    if dice.is(50) {
        let (key, value) = dice.of(&ASKED);
        annotations.insert(format!("topology.ipvs-topo.io/{key}"), json!(value));
    }
    let mut labels = Map::new();
    labels.insert("tier".to_owned(), json!(dice.of(&["front", "back"])));
    if dice.is(10) {
        let other = "service.kubernetes.io/service-proxy-name".to_owned();
        labels.insert(other, json!("other"));
    }
    json!({
        "name": format!("s{index}"), "namespace": NAMESPACE,
        "labels": labels, "annotations": annotations,
    })
}

/// The fields that every Service with ports has.
fn base(dice: &mut Dice, index: usize, kind: &str, families: &[&str]) -> Value {
    let addresses: Vec<String> = families
        .iter()
        .map(|family| match (kind, *family) {
            ("Headless", _) => "None".to_owned(),
            (_, "IPv6") => format!("fd00:10:96::c80{index}"),
            _ => format!("10.96.200.{index}"),
        })
        .take(if kind == "Headless" { 1 } else { 2 })
        .collect();
    let policy = match families {
        [_] => "SingleStack",
        _ => "RequireDualStack",
    };
    let mut spec = json!({
        "clusterIP": addresses.first(), "clusterIPs": addresses, "ipFamilies": families,
        "ipFamilyPolicy": policy, "ports": ports(dice, index, kind),
    });
    let more = spec.as_object_mut().unwrap();
    if dice.is(20) {
        more.insert("sessionAffinity".to_owned(), json!("ClientIP"));
        more.insert(
            "sessionAffinityConfig".to_owned(),
            json!({"clientIP": {"timeoutSeconds": 60 + dice.roll(900)}}),
        );
    }
    if dice.is(25) {
        more.insert("internalTrafficPolicy".to_owned(), json!("Local"));
    }
    if dice.is(25) {
        more.insert("trafficDistribution".to_owned(), json!("PreferClose"));
    }
    spec
}

fn ports(dice: &mut Dice, index: usize, kind: &str) -> Value {
    let protocol = dice.of(&["TCP", "TCP", "UDP", "SCTP"]);
    let target = if dice.is(30) {
        json!("http")
    } else {
        json!(8080)
    };
    let mut ports =
        vec![json!({"name": "main", "protocol": protocol, "port": 80, "targetPort": target})];
    if dice.is(30) {
        ports.push(json!({"name": "dns", "protocol": "UDP", "port": 53, "targetPort": 5353}));
    }
    if dice.is(20) {
        ports.push(json!({"name": "tls", "protocol": "TCP", "port": 443, "targetPort": 8443}));
    }
    if matches!(kind, "NodePort" | "LoadBalancer") {
        for (at, port) in ports.iter_mut().enumerate() {
            // Below the ports that the API server allocates.
            let number = 30_000 + index * 10 + at;
            let port = port.as_object_mut().unwrap();
            port.insert("nodePort".to_owned(), json!(number));
        }
    }
    json!(ports)
}

/// External IPs, and the traffic policy of outside clients.
fn external(
    dice: &mut Dice,
    index: usize,
    kind: &str,
    families: &[&str],
    spec: &mut Map<String, Value>,
) {
    let has_addresses = dice.is(20);
    if has_addresses {
        let addresses = families.iter().map(|family| match *family {
            "IPv6" => format!("2001:db8:1::{index}"),
            _ => format!("198.51.100.{index}"),
        });
        spec.insert(
            "externalIPs".to_owned(),
            addresses.collect::<Vec<_>>().into(),
        );
    }
    if (has_addresses || kind != "ClusterIP") && dice.is(45) {
        spec.insert("externalTrafficPolicy".to_owned(), json!("Local"));
        if kind == "LoadBalancer" {
            spec.insert("healthCheckNodePort".to_owned(), json!(30_060 + index));
        }
    }
}

fn load_balancer(dice: &mut Dice, index: usize, spec: &mut Map<String, Value>) {
    if dice.is(30) {
        let ranges = ["10.0.0.0/8", "192.0.2.7/32", "2001:db8:9::/48"];
        let ranges: Vec<_> = ranges.iter().filter(|_| dice.is(60)).collect();
        spec.insert("loadBalancerSourceRanges".to_owned(), json!(ranges));
    }
    if dice.is(20) {
        spec.insert("allocateLoadBalancerNodePorts".to_owned(), json!(false));
        if index.is_multiple_of(2) {
            let ports = spec.get_mut("ports").and_then(Value::as_array_mut).unwrap();
            for port in ports {
                port.as_object_mut().unwrap().remove("nodePort");
            }
        }
    }
    if dice.is(20) {
        spec.insert(
            "loadBalancerClass".to_owned(),
            json!("example.com/announcer"),
        );
    }
}

/// The addresses that a load balancer has written, some of a family that the Service does not have.
fn ingress(dice: &mut Dice, index: usize, nodes: usize) -> Value {
    let choices = [
        format!("203.0.113.{}", index + 1),
        format!("203.0.113.{}", index + 101),
        format!("2001:db8::{}", index + 1),
        node_address(dice.roll(nodes), "IPv4"),
    ];
    let likely = [70, 20, 50, 8];
    let mut entries = Vec::new();
    for (address, percent) in choices.iter().zip(likely) {
        if dice.is(percent) {
            entries.push(match dice.roll(4) {
                0 => json!({"ip": address, "ipMode": "Proxy"}),
                1 => json!({"ip": address}),
                _ => json!({"ip": address, "ipMode": "VIP"}),
            });
        }
    }
    if dice.is(10) {
        entries.push(json!({"hostname": "lb.example.com"}));
    }
    json!(entries)
}
