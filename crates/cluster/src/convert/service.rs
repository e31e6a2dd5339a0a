//! Converts `v1` Service: addresses, ports, affinity, traffic policies and topology policy.

use std::net::IpAddr;
use std::num::NonZeroU16;
use std::sync::Arc;

use rustc_hash::FxHashSet;
use topology_core::hints::HintMode;
use topology_core::model::{Frontend, Service, ServicePort, TrafficPolicy, Unprogrammed};
use topology_core::policy::AnnotationChoice;

use super::external_ips::{self, ExternalIps};
use super::policy::{self, Asking};
use super::reached::Reached;
use super::report::Report;
use super::{address, frontends, meta, ports};
use crate::intern::Interner;
use crate::object::{Ignored, ObjectKey};
use crate::{AllowLists, ServiceSelection};
use object_tree::Field;

/// The annotations that ask for Topology Aware Hints. If a Service has both, the older
/// annotation decides.
const OLDER_HINTS: &str = "service.kubernetes.io/topology-aware-hints";
const NEWER_HINTS: &str = "service.kubernetes.io/topology-mode";
/// The affinity timeout if the Service has none (API default).
const DEFAULT_AFFINITY_SECONDS: u32 = 10_800;
/// The longest timeout that the API allows: one day.
const MAX_AFFINITY_SECONDS: u32 = 86_400;

/// Returns `Ok(None)` if the Service is not valid.
pub(crate) fn convert(
    root: &Field<'_>,
    key: &ObjectKey,
    allowed: &AllowLists,
    services: ServiceSelection,
    interner: &mut Interner,
    report: &mut Report,
) -> Result<Option<Service>, Ignored> {
    let spec = root.get("spec");
    if !spec.is_map(report) {
        report.warn(
            &spec,
            "the Service cannot be used without it",
            "write the Service's spec",
        );
        return Ok(None);
    }
    let reached = Reached::of(root, &spec, services, report)?;
    let service_ports = service_ports(&spec, reached, interner, report);
    let addresses = match reached {
        Reached::AtClusterIps => {
            cluster_addresses(root, &spec, &service_ports, allowed, interner, report)
        }
        Reached::AtEndpoints | Reached::ByOtherName => Some(Addresses::default()),
    };
    let Some(Addresses { frontends, refused }) = addresses else {
        return Ok(None);
    };
    let external = traffic_policy(&spec, "externalTrafficPolicy", report);
    let Asking {
        asked,
        topology_keys,
        faults,
    } = policy::of_service(root, &spec, external, report);
    let (policy, named_policy) = match asked {
        Some(AnnotationChoice::Policy(policy)) => (Some(interner.policy(*policy)), None),
        Some(AnnotationChoice::Named(name)) => (None, Some(name)),
        None => (None, None),
    };
    let metadata = root.get("metadata");
    let labels = meta::texts(&metadata.get("labels"), interner, report);
    let published = frontends::published(&frontends, &service_ports);
    Ok(Some(Service {
        name: key.name.clone(),
        labels: labels.into_iter().collect(),
        created: meta::created(root, report),
        frontends,
        ports: service_ports,
        session_affinity: session_affinity(&spec, report),
        internal_traffic_policy: traffic_policy(&spec, "internalTrafficPolicy", report),
        external_traffic_policy: external,
        source_ranges: frontends::source_ranges(&spec, published, report),
        health_check_node_port: health_check_node_port(&spec, external, report),
        policy,
        named_policy,
        topology_keys: topology_keys.map(|policy| interner.policy(policy)),
        faults,
        hint_mode: hint_mode(root, &spec, report),
        external_name: external_name(&spec, reached, interner, report),
        publish_not_ready_addresses: publishes_not_ready(&spec, reached, report),
        unprogrammed: refused,
    }))
}

/// The hints that the Service asks for (KEP-2433, KEP-4444).
fn hint_mode(root: &Field<'_>, spec: &Field<'_>, report: &mut Report) -> HintMode {
    let metadata = root.get("metadata");
    let annotations = metadata.get("annotations");
    let mut text = |key| annotations.entry(key).text(report);
    let (older, newer) = (text(OLDER_HINTS), text(NEWER_HINTS));
    HintMode::of(
        older,
        newer,
        traffic_distribution(&spec.get("trafficDistribution"), report),
    )
}

/// Warns about an unknown value, which Kubernetes ignores as well.
fn traffic_distribution<'a>(field: &Field<'a>, report: &mut Report) -> Option<&'a str> {
    let value = field.text(report)?;
    if !HintMode::DISTRIBUTIONS.contains(&value) {
        let message = format!("`{value}` is not a traffic distribution and has no effect");
        let remedy = format!("use one of {}", HintMode::DISTRIBUTIONS.join(", "));
        report.warn(field, message, remedy);
    }
    Some(value)
}

/// The addresses of a Service.
#[derive(Default)]
struct Addresses {
    frontends: Vec<Frontend>,
    /// Those that are not programmed.
    refused: Vec<Unprogrammed>,
}

/// `None` without a usable cluster IP or port.
fn cluster_addresses(
    root: &Field<'_>,
    spec: &Field<'_>,
    ports: &[ServicePort],
    allowed: &AllowLists,
    interner: &mut Interner,
    report: &mut Report,
) -> Option<Addresses> {
    let cluster_ips = cluster_ips(spec, report);
    if cluster_ips.is_empty() || ports.is_empty() {
        return None;
    }
    let ExternalIps { served, refused } =
        external_ips::convert(spec, &cluster_ips, &allowed.external_ips, interner, report);
    Some(Addresses {
        frontends: frontends::frontends(root, &cluster_ips, ports, served, report),
        refused,
    })
}

fn external_name(
    spec: &Field<'_>,
    reached: Reached,
    interner: &mut Interner,
    report: &mut Report,
) -> Option<Arc<str>> {
    if reached != Reached::ByOtherName {
        return None;
    }
    let name = spec.get("externalName").text(report).unwrap_or_default();
    Some(interner.text(name))
}

/// Only headless Services use the field.
fn publishes_not_ready(spec: &Field<'_>, reached: Reached, report: &mut Report) -> bool {
    let field = spec.get("publishNotReadyAddresses");
    reached == Reached::AtEndpoints && field.boolean(report).unwrap_or(false)
}

/// The cluster IPs, at most one of each family, the primary first (KP-IN-09).
///
/// `spec.clusterIP` repeats the first of `spec.clusterIPs`, and is used only if that is missing
/// or empty.
/// `spec.ipFamilies` repeats the families of the addresses, and is not read.
fn cluster_ips(spec: &Field<'_>, report: &mut Report) -> Vec<IpAddr> {
    let mut found: Vec<IpAddr> = Vec::new();
    let several = spec.get("clusterIPs");
    let mut is_listed = false;
    for entry in several.items(report) {
        is_listed = true;
        let Some(ip) = address::parse_usable(&entry, "this cluster IP", report) else {
            continue;
        };
        if found.iter().any(|other| other.is_ipv4() == ip.is_ipv4()) {
            let message = format!("{ip} is a second address of its family and is skipped");
            report.warn(
                &entry,
                message,
                "give at most one IPv4 and one IPv6 address",
            );
            continue;
        }
        found.push(ip);
    }
    if !is_listed {
        let single = spec.get("clusterIP");
        found.extend(address::parse_usable(&single, "this cluster IP", report));
    }
    if found.is_empty() {
        let field = if is_listed {
            several
        } else {
            spec.get("clusterIP")
        };
        report.warn(
            &field,
            "no usable cluster IP, so the Service cannot be used",
            "add at least one usable address",
        );
    }
    found.shrink_to_fit();
    found
}

/// The ports, which only a Service with cluster IPs must have.
fn service_ports(
    spec: &Field<'_>,
    reached: Reached,
    interner: &mut Interner,
    report: &mut Report,
) -> Vec<ServicePort> {
    let listed = spec.get("ports");
    let mut entries = listed.items(report).peekable();
    if reached != Reached::AtClusterIps && entries.peek().is_none() {
        return Vec::new();
    }
    let mut found: Vec<ServicePort> = Vec::new();
    // A Service may have thousands of ports: hash sets avoid comparing each port with all others.
    let (mut names, mut numbers) = (FxHashSet::default(), FxHashSet::default());
    for entry in entries {
        let Some(port) = service_port(&entry, interner, report) else {
            continue;
        };
        let by_number = numbers.contains(&(port.protocol, port.port));
        let name = (port.protocol, Arc::clone(&port.name));
        if by_number || names.contains(&name) {
            let message = if by_number {
                format!(
                    "a second {} port {}; it is skipped",
                    port.protocol, port.port
                )
            } else {
                format!(
                    "a second {} port called `{}`; it is skipped",
                    port.protocol, port.name
                )
            };
            report.warn(&entry, message, "give each port its own name and number");
            continue;
        }
        names.insert(name);
        numbers.insert((port.protocol, port.port));
        found.push(port);
    }
    if found.is_empty() {
        report.warn(
            &listed,
            "no usable port, so the Service cannot be used",
            "add at least one port",
        );
    }
    found.shrink_to_fit();
    found
}

fn service_port(
    entry: &Field<'_>,
    interner: &mut Interner,
    report: &mut Report,
) -> Option<ServicePort> {
    let protocol = ports::protocol(entry, report)?;
    let number = entry.get("port");
    if !number.is_present() {
        report.warn(
            &number,
            "missing; the port is skipped",
            "write the Service's port, 1 to 65535",
        );
        return None;
    }
    let port = ports::number(&number, report)?;
    let name = interner.text(entry.get("name").name(report).unwrap_or_default());
    Some(ServicePort {
        name,
        protocol,
        port,
        node_port: node_port(entry, report),
    })
}

/// The node port; 0 means that none is allocated.
fn node_port(entry: &Field<'_>, report: &mut Report) -> Option<NonZeroU16> {
    let field = entry.get("nodePort");
    if field.text(report)? == "0" {
        return None;
    }
    field.parse(
        "a port number; the port has no node port",
        "use 1 to 65535",
        report,
    )
}

/// The affinity timeout in seconds, for `sessionAffinity: ClientIP` (KP-IN-12).
fn session_affinity(spec: &Field<'_>, report: &mut Report) -> Option<u32> {
    let field = spec.get("sessionAffinity");
    match field.text(report)? {
        "None" => return None,
        "ClientIP" => {}
        other => {
            report.warn(
                &field,
                format!("`{other}` is not an affinity and counts as None"),
                "use ClientIP or None",
            );
            return None;
        }
    }
    let config = spec.get("sessionAffinityConfig");
    let client_ip = config.get("clientIP");
    let timeout = client_ip.get("timeoutSeconds");
    let remedy = "use 1 to 86400";
    let seconds: Option<u32> = timeout.parse("a number of seconds; 10800 is used", remedy, report);
    let seconds = seconds.unwrap_or(DEFAULT_AFFINITY_SECONDS);
    if (1..=MAX_AFFINITY_SECONDS).contains(&seconds) {
        return Some(seconds);
    }
    report.warn(
        &timeout,
        format!("{seconds} seconds are out of range; {DEFAULT_AFFINITY_SECONDS} is used"),
        remedy,
    );
    Some(DEFAULT_AFFINITY_SECONDS)
}

/// Returns the port if load balancers use it (KP-IN-13).
fn health_check_node_port(
    spec: &Field<'_>,
    external: TrafficPolicy,
    report: &mut Report,
) -> Option<NonZeroU16> {
    let field = spec.get("healthCheckNodePort");
    let is_load_balancer = spec.get("type").text(report) == Some("LoadBalancer");
    let is_used = is_load_balancer && external == TrafficPolicy::Local;
    if !is_used || field.text(report) == Some("0") {
        return None;
    }
    ports::number(&field, report)
}

fn traffic_policy(spec: &Field<'_>, name: &str, report: &mut Report) -> TrafficPolicy {
    let field = spec.get(name);
    match field.text(report) {
        None | Some("Cluster") => TrafficPolicy::Cluster,
        Some("Local") => TrafficPolicy::Local,
        Some(other) => {
            let message = format!("`{other}` is not a traffic policy and counts as Cluster");
            report.warn(&field, message, "use Cluster or Local");
            TrafficPolicy::Cluster
        }
    }
}
