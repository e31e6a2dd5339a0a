//! Lists the parts of a Service that this version does not program yet, so that output names them.

use topology_core::model::Unprogrammed;

use super::report::Report;
use crate::intern::Interner;
use object_tree::Field;

/// The parts of a Service besides its cluster IPs.
pub(crate) struct OtherFrontends {
    /// In the order of `kubectl explain`.
    pub(crate) parts: Vec<Unprogrammed>,
    /// Whether the Service has an entrance from outside (KP-TP-01): a node port, an external IP or
    /// a load balancer's address. It decides which traffic policies apply.
    pub(crate) externally_accessible: bool,
}

pub(crate) fn list(
    root: &Field<'_>,
    spec: &Field<'_>,
    interner: &mut Interner,
    report: &mut Report,
) -> OtherFrontends {
    let mut parts = Vec::new();
    let mut add = |field: &Field<'_>, reason: &str| {
        let field = interner.text(&field.to_string());
        parts.push(Unprogrammed {
            field,
            reason: interner.text(reason),
        });
    };
    let entrances = [
        external_ips(spec, report, &mut add),
        load_balancer(root, report, &mut add),
        node_ports(spec, report, &mut add),
    ];
    let externally_accessible = entrances.contains(&true);
    let external_policy = spec.get("externalTrafficPolicy");
    if external_policy.text(report) == Some("Local") && externally_accessible {
        add(
            &external_policy,
            "traffic from outside is not programmed yet, so its policy has no effect",
        );
    }
    let ranges = spec.get("loadBalancerSourceRanges");
    if ranges.items(report).next().is_some() {
        add(
            &ranges,
            "source ranges are not programmed yet; the load balancer's address is not either",
        );
    }
    let health = spec.get("healthCheckNodePort");
    if health.text(report).is_some_and(|port| port != "0") {
        add(&health, "the health check port is not served yet");
    }
    parts.shrink_to_fit();
    OtherFrontends {
        parts,
        externally_accessible,
    }
}

fn external_ips(
    spec: &Field<'_>,
    report: &mut Report,
    add: &mut impl FnMut(&Field<'_>, &str),
) -> bool {
    let listed = spec.get("externalIPs");
    let mut any = false;
    for entry in listed.items(report) {
        add(&entry, "external IPs are not programmed yet");
        any = true;
    }
    any
}

/// Adds the load balancer's addresses. No node proxy programs a load balancer with only a host name
/// or with `ipMode: Proxy` (KP-IN-11), so these are not listed.
fn load_balancer(
    root: &Field<'_>,
    report: &mut Report,
    add: &mut impl FnMut(&Field<'_>, &str),
) -> bool {
    let status = root.get("status");
    let load_balancer = status.get("loadBalancer");
    let ingress = load_balancer.get("ingress");
    let mut any = false;
    for entry in ingress.items(report) {
        let ip = entry.get("ip");
        if ip.text(report).is_some() && entry.get("ipMode").text(report) != Some("Proxy") {
            add(&ip, "addresses of load balancers are not programmed yet");
            any = true;
        }
    }
    any
}

fn node_ports(
    spec: &Field<'_>,
    report: &mut Report,
    add: &mut impl FnMut(&Field<'_>, &str),
) -> bool {
    let listed = spec.get("ports");
    let mut any = false;
    for entry in listed.items(report) {
        let node_port = entry.get("nodePort");
        if node_port.text(report).is_some_and(|port| port != "0") {
            add(&node_port, "node ports are not programmed yet");
            any = true;
        }
    }
    any
}
