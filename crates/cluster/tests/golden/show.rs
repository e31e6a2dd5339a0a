//! Prints objects as text, a few lines each.

use std::fmt::Write as _;

use cluster::object::Object;
use topology_core::model::{
    Drain, Endpoint, EndpointSlice, Faults, FrontendKind, Labels, Node, Service, TopologyPolicy,
};

pub(crate) fn show(object: &Object) -> String {
    match object {
        Object::Node(node) => show_node(node),
        Object::Service(service) => show_service(service),
        Object::EndpointSlice(slice) => show_slice(slice),
        Object::ServiceCidr(cidr) => {
            let cidrs: Vec<String> = cidr.cidrs.iter().map(ToString::to_string).collect();
            format!("ServiceCIDR {}: {}\n", cidr.name, cidrs.join(" "))
        }
        Object::Policy(policy) => show_policy(policy),
        Object::Drain(drain) => show_drain(drain),
        Object::PodMap(pods) => {
            let mut text = format!("PodMap {}\n", pods.node);
            for (address, pod) in &pods.pods {
                writeln!(text, "  {address} {pod}").unwrap();
            }
            text
        }
        Object::Namespace(namespace) => {
            let labels = show_labels(&namespace.labels);
            format!("Namespace {}:{labels}\n", namespace.name)
        }
    }
}

fn show_node(node: &Node) -> String {
    let mut text = format!("Node {}:", node.name);
    for address in &node.addresses {
        write!(text, " {address}").unwrap();
    }
    for range in &node.pod_cidrs {
        write!(text, " pods={range}").unwrap();
    }
    text += &show_labels(&node.labels);
    if node.cpu_milli > 0 {
        write!(text, " cpu={}m", node.cpu_milli).unwrap();
    }
    if !node.ready {
        text += " not-ready";
    }
    if node.leaving {
        text += " leaving";
    }
    text + "\n"
}

fn show_policy(policy: &TopologyPolicy) -> String {
    let mut text = format!("{policy}: {:?} {:?}", policy.enforcement, policy.policy);
    write!(text, "\n  priority {}", policy.priority).unwrap();
    if let Some(created) = policy.created {
        write!(text, " created={created}").unwrap();
    }
    for (name, selector) in [
        ("namespaces", &policy.namespace_selector),
        ("services", &policy.service_selector),
        ("nodes", &policy.node_selector),
    ] {
        if !selector.is_empty() {
            write!(text, "\n  {name} {selector:?}").unwrap();
        }
    }
    if !policy.port_names.is_empty() {
        write!(text, "\n  ports {}", policy.port_names.join(" ")).unwrap();
    }
    if let Some(limits) = &policy.owner_limits {
        write!(text, "\n  {limits:?}").unwrap();
    }
    text + "\n"
}

fn show_drain(drain: &Drain) -> String {
    format!("TopologyDrain {}: {drain:?}\n", drain.name)
}

fn show_labels(labels: &Labels) -> String {
    let mut text = String::new();
    for (key, value) in labels.iter() {
        write!(text, " {key}={value}").unwrap();
    }
    text
}

fn show_service(service: &Service) -> String {
    let mut text = format!("Service {}:", service.name);
    for frontend in &service.frontends {
        match frontend.kind {
            FrontendKind::ClusterIp => write!(text, " {}", frontend.address).unwrap(),
            kind => write!(text, " {}={}", kind.as_str(), frontend.address).unwrap(),
        }
    }
    for port in &service.ports {
        write!(text, " [{} {} {}", port.name, port.protocol, port.port).unwrap();
        if let Some(node_port) = port.node_port {
            write!(text, ":{node_port}").unwrap();
        }
        text.push(']');
    }
    write!(text, " internal={:?}", service.internal_traffic_policy).unwrap();
    write!(text, " external={:?}", service.external_traffic_policy).unwrap();
    if let Some(port) = service.health_check_node_port {
        write!(text, " health={port}").unwrap();
    }
    for range in service.source_ranges.iter().flatten() {
        write!(text, " from={range}").unwrap();
    }
    if service.source_ranges.as_ref().is_some_and(Vec::is_empty) {
        text += " from=nowhere";
    }
    if let Some(seconds) = service.session_affinity {
        write!(text, " affinity={seconds}s").unwrap();
    }
    if let Some(created) = service.created {
        write!(text, " created={created}").unwrap();
    }
    if let Some(policy) = &service.policy {
        write!(
            text,
            "\n  policy {} {}",
            policy.source.as_str(),
            policy.mode.as_str()
        )
        .unwrap();
        for level in &policy.levels {
            write!(text, " {}={}", level.key, level.weight).unwrap();
        }
    }
    if service.faults != Faults::None {
        write!(text, "\n  faults: {:?}", service.faults).unwrap();
    }
    for part in &service.unprogrammed {
        write!(text, "\n  not programmed: {}: {}", part.field, part.reason).unwrap();
    }
    text + "\n"
}

fn show_slice(slice: &EndpointSlice) -> String {
    let mut text = format!(
        "EndpointSlice {} of {}: {}",
        slice.name, slice.service, slice.family
    );
    for port in &slice.ports {
        write!(text, " [{} {} {}]", port.name, port.protocol, port.port).unwrap();
    }
    for endpoint in &slice.endpoints {
        text.push_str(&show_endpoint(endpoint));
    }
    text + "\n"
}

fn show_endpoint(endpoint: &Endpoint) -> String {
    let mut text = format!("\n  {}", endpoint.address);
    write!(text, " node={}", endpoint.node.as_deref().unwrap_or("-")).unwrap();
    write!(text, " zone={}", endpoint.zone.as_deref().unwrap_or("-")).unwrap();
    for (condition, word) in [
        (endpoint.ready, "ready"),
        (endpoint.serving, "serving"),
        (endpoint.terminating, "terminating"),
    ] {
        if condition {
            write!(text, " {word}").unwrap();
        }
    }
    if let Some(hints) = &endpoint.hints {
        write!(
            text,
            " for-zones={:?} for-nodes={:?}",
            hints.zones, hints.nodes
        )
        .unwrap();
    }
    text
}
