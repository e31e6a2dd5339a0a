//! Writes ports, traffic policies and external addresses of Services, and the addresses of Nodes.

use std::net::IpAddr;

use serde_json::{Map, Value, json};
use topology_core::model::{FrontendKind, Node, Service, TrafficPolicy};

use crate::cluster::Cluster;
use crate::generate::ME;

/// The addresses of `kind` in their order.
pub(super) fn addresses(service: &Service, kind: FrontendKind) -> Vec<IpAddr> {
    let frontends = service.frontends.iter();
    frontends
        .filter(|frontend| frontend.kind == kind)
        .map(|frontend| frontend.address)
        .collect()
}

/// `status.addresses`: `render` serves node ports at those of the node.
pub(super) fn node_addresses(cluster: &Cluster, node: &Node) -> Vec<Value> {
    let served = cluster.node_port_addresses.iter();
    let served = served.filter(|_| *node.name == *ME);
    served
        .chain(&node.addresses)
        .map(|address| json!({"type": "InternalIP", "address": address}))
        .collect()
}

/// The fields of `spec` about ports and traffic policies, and `status`.
pub(super) fn external(service: &Service) -> (Map<String, Value>, Value) {
    let load_balancers = addresses(service, FrontendKind::LoadBalancer);
    let has_node_ports = !addresses(service, FrontendKind::NodePort).is_empty();
    let kind = match (load_balancers.is_empty(), has_node_ports) {
        (false, _) => "LoadBalancer",
        (true, true) => "NodePort",
        (true, false) => "ClusterIP",
    };
    let ports = service.ports.iter().map(|port| {
        let mut fields = json!({"name": port.name, "protocol": port.protocol.to_string(), "port": port.port, "targetPort": 8080});
        if let Some(number) = port.node_port {
            fields["nodePort"] = json!(number);
        }
        fields
    });
    let mut spec = Map::from_iter([
        ("type".to_owned(), json!(kind)),
        (
            "internalTrafficPolicy".to_owned(),
            json!(word(service.internal_traffic_policy)),
        ),
        ("ports".to_owned(), ports.collect()),
    ]);
    let external_ips = addresses(service, FrontendKind::ExternalIp);
    if kind != "ClusterIP" || !external_ips.is_empty() {
        spec.insert(
            "externalTrafficPolicy".to_owned(),
            json!(word(service.external_traffic_policy)),
        );
    }
    spec.insert("externalIPs".to_owned(), json!(external_ips));
    if let Some(ranges) = &service.source_ranges {
        let ranges = ranges.iter().map(|range| json!(range.to_string()));
        spec.insert("loadBalancerSourceRanges".to_owned(), ranges.collect());
    }
    let ingress = load_balancers
        .iter()
        .map(|address| json!({"ip": address, "ipMode": "VIP"}));
    let ingress: Vec<Value> = ingress.collect();
    (spec, json!({"loadBalancer": {"ingress": ingress}}))
}

const fn word(policy: TrafficPolicy) -> &'static str {
    match policy {
        TrafficPolicy::Cluster => "Cluster",
        TrafficPolicy::Local => "Local",
    }
}
