//! Converts `spec.externalIPs`: addresses that an administrator allows, and the others as not programmed.

use std::net::IpAddr;

use topology_core::model::{Family, IpNetwork, Unprogrammed};

use super::address;
use super::report::Report;
use crate::intern::Interner;
use object_tree::Field;

/// The external IPs of a Service.
#[derive(Debug, Default)]
pub(crate) struct ExternalIps {
    pub(crate) served: Vec<IpAddr>,
    /// Those outside of the allowed ranges.
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
    for entry in spec.get("externalIPs").items(report) {
        let Some(ip) = address::parse_usable(&entry, "this external IP", report) else {
            continue;
        };
        if !allowed.iter().any(|range| range.contains(ip)) {
            found.refused.push(not_allowed(&entry, ip, interner));
        } else if has_family(ip, cluster_ips, &entry, report) {
            found.served.push(ip);
        }
    }
    found
}

fn not_allowed(entry: &Field<'_>, ip: IpAddr, interner: &mut Interner) -> Unprogrammed {
    let reason =
        format!("external IP {ip} is in no range of --external-ip-ranges, so it is not programmed");
    Unprogrammed {
        field: interner.text(&entry.to_string()),
        reason: interner.text(&reason),
    }
}

/// Whether the Service has a cluster IP of the family of `ip`.
fn has_family(ip: IpAddr, cluster_ips: &[IpAddr], entry: &Field<'_>, report: &mut Report) -> bool {
    let family = Family::of(ip);
    let has_family = cluster_ips.iter().any(|other| Family::of(*other) == family);
    if !has_family {
        report.warn(
            entry,
            format!("the Service has no {family} cluster IP; external IP {ip} is skipped"),
            format!("add {family} to spec.ipFamilies, or remove the address"),
        );
    }
    has_family
}
