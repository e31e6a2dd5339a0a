//! Converts the addresses of a Service for clients outside of the cluster.

use std::net::IpAddr;

use rustc_hash::FxHashSet;
use topology_core::model::{Family, Frontend, FrontendKind, IpNetwork, ServicePort, parse_range};

use super::address;
use super::report::Report;
use object_tree::Field;

/// Most pairs of a source range and a port at a load balancer address: each is an element in the kernel of every node,
/// and a Service may have thousands of both. kube-proxy has as many for all Services together (KP-IS-05).
const MOST_PERMITTED: usize = 65_536;

/// Most pairs of a port and an address for outside clients: each is a virtual server on every node. A Service with the
/// addresses of 1,000 nodes as external IPs may have 16 ports.
const MOST_PUBLISHED: usize = 16_384;

/// Returns all frontends: the cluster IPs, then node ports, load balancer addresses and external IPs in their families
/// (KP-IN-09). Of two kinds with one address the first counts, so `loadBalancerSourceRanges` apply to an external IP that
/// is also an address of the load balancer. The last ones of too many are left out.
pub(crate) fn frontends(
    root: &Field<'_>,
    cluster_ips: &[IpAddr],
    ports: &[ServicePort],
    external_ips: Vec<IpAddr>,
    report: &mut Report,
) -> Vec<Frontend> {
    let cluster = cluster_ips.iter().copied();
    let mut found: Vec<Frontend> = cluster.clone().map(Frontend::cluster_ip).collect();
    if ports.iter().any(|port| port.node_port.is_some()) {
        found.extend(cluster.clone().map(Family::of).map(Frontend::node_port));
    }
    let load_balancers = load_balancer(root, cluster_ips, report).into_iter();
    let external_ips = external_ips.into_iter().map(Frontend::external_ip);
    let candidates = load_balancers
        .map(Frontend::load_balancer)
        .chain(external_ips);
    let mut known: FxHashSet<IpAddr> = found.iter().map(|frontend| frontend.address).collect();
    let mut published: Vec<Frontend> = candidates
        .filter(|frontend| known.insert(frontend.address))
        .collect();
    let most = MOST_PUBLISHED / ports.len().max(1);
    if published.len() > most {
        let message = format!(
            "too many addresses for {} ports; only the first {most} load balancer addresses and external IPs are served",
            ports.len()
        );
        report.warn(
            &root.get("spec").get("ports"),
            message,
            "use fewer ports or several Services",
        );
        published.truncate(most);
    }
    found.extend(published);
    found.shrink_to_fit();
    found
}

/// Returns the addresses of the load balancer in the families of the cluster IPs, except those with `ipMode: Proxy` and
/// those that are only a host name (KP-IN-11).
fn load_balancer(root: &Field<'_>, cluster_ips: &[IpAddr], report: &mut Report) -> Vec<IpAddr> {
    let status = root.get("status");
    let load_balancer = status.get("loadBalancer");
    let ingress = load_balancer.get("ingress");
    let mut found = Vec::new();
    for entry in ingress.items(report) {
        let ip = entry.get("ip");
        let is_proxy = entry.get("ipMode").text(report) == Some("Proxy");
        if is_proxy || ip.text(report).is_none_or(str::is_empty) {
            continue;
        }
        let address = address::parse_usable(&ip, "this load balancer address", report);
        let what = "load balancer address";
        found.extend(
            address.filter(|vip| address::has_family(*vip, cluster_ips, &ip, what, report)),
        );
    }
    found
}

/// Returns `loadBalancerSourceRanges`; `None` if the field is empty, so that all clients may connect. `published` ports
/// are at load balancer addresses.
///
/// An invalid range is skipped, and permits no client. So are the smallest ones of too many.
pub(crate) fn source_ranges(
    spec: &Field<'_>,
    published: usize,
    report: &mut Report,
) -> Option<Vec<IpNetwork>> {
    let listed = spec.get("loadBalancerSourceRanges");
    let mut ranges = Vec::new();
    let mut is_limited = false;
    for entry in listed.items(report) {
        is_limited = true;
        ranges.extend(entry.parse_with(
            |text| parse_range(text.trim()).ok(),
            "a range of addresses and permits no client",
            "write it as 192.0.2.0/24",
            report,
        ));
    }
    let most = MOST_PERMITTED / published.max(1);
    if ranges.len() > most {
        let message = format!(
            "too many for {published} ports at load balancer addresses; only the {most} largest ranges permit clients"
        );
        report.warn(&listed, message, "use fewer ranges or several Services");
        ranges.sort_by_key(IpNetwork::prefix);
        ranges.truncate(most);
        ranges.shrink_to_fit();
    }
    is_limited.then_some(ranges)
}

/// The number of ports at load balancer addresses.
pub(crate) fn published(frontends: &[Frontend], ports: &[ServicePort]) -> usize {
    let published = frontends
        .iter()
        .filter(|frontend| frontend.kind == FrontendKind::LoadBalancer);
    published.count() * ports.len()
}
