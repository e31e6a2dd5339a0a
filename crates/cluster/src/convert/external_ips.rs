//! Converts `spec.externalIPs`: addresses that an administrator allows, and the others as not programmed.

use std::net::IpAddr;

use topology_core::model::{IpNetwork, Unprogrammed};

use super::address;
use super::report::Report;
use crate::intern::Interner;
use object_tree::Field;

/// Most refused addresses of a Service that are named; a Service may have a hundred thousand.
const MOST_NAMED: usize = 20;

/// The external IPs of a Service.
#[derive(Debug, Default)]
pub(crate) struct ExternalIps {
    pub(crate) served: Vec<IpAddr>,
    /// The first ones outside of the allowed ranges, and how many more there are.
    pub(crate) refused: Vec<Unprogrammed>,
}

/// Returns the external IPs in the families of the cluster IPs. Warns about all others (KP-IN-10).
pub(crate) fn convert(
    spec: &Field<'_>,
    cluster_ips: &[IpAddr],
    allowed: &[IpNetwork],
    interner: &mut Interner,
    report: &mut Report,
) -> ExternalIps {
    let mut found = ExternalIps::default();
    let mut unnamed = 0;
    let listed = spec.get("externalIPs");
    for entry in listed.items(report) {
        let Some(ip) = address::parse_usable(&entry, "this external IP", report) else {
            continue;
        };
        if !allowed.iter().any(|range| range.contains(ip)) {
            if found.refused.len() < MOST_NAMED {
                let what = format!("external IP {ip} is");
                found.refused.push(not_allowed(&entry, &what, interner));
            } else {
                unnamed += 1;
            }
        } else if address::has_family(ip, cluster_ips, &entry, "external IP", report) {
            found.served.push(ip);
        }
    }
    if unnamed > 0 {
        let what = format!("each of {unnamed} more external IPs is");
        found.refused.push(not_allowed(&listed, &what, interner));
    }
    found
}

fn not_allowed(field: &Field<'_>, what: &str, interner: &mut Interner) -> Unprogrammed {
    let reason = format!("{what} in no range of --external-ip-ranges, so it is not programmed");
    Unprogrammed {
        field: interner.text(&field.to_string()),
        reason: interner.text(&reason),
    }
}
