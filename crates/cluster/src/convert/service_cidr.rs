//! Converts `networking.k8s.io` `ServiceCIDR`: the ranges of cluster IPs.

use topology_core::model::{IpNetwork, parse_range};

use super::report::Report;
use crate::object::{ObjectKey, ServiceCidr};
use object_tree::Field;

/// Returns `None` if the object is not valid.
pub(crate) fn convert(
    root: &Field<'_>,
    key: &ObjectKey,
    report: &mut Report,
) -> Option<ServiceCidr> {
    let spec = root.get("spec");
    let listed = spec.get("cidrs");
    let mut cidrs: Vec<IpNetwork> = Vec::new();
    for entry in listed.items(report) {
        cidrs.extend(entry.parse_with(
            |text| parse_range(text).ok(),
            "a range of addresses and is skipped",
            "write it as 10.96.0.0/12",
            report,
        ));
    }
    if cidrs.is_empty() {
        report.warn(
            &listed,
            "no usable range, so the object cannot be used",
            "add at least one range",
        );
        return None;
    }
    Some(ServiceCidr {
        name: key.name.name.clone(),
        cidrs,
    })
}
