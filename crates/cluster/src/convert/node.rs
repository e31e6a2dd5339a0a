//! Converts `v1` Node: name, labels, addresses, allocatable CPU, and whether it is ready or
//! leaving.

use std::collections::{BTreeSet, HashSet};
use std::net::IpAddr;
use std::sync::Arc;

use topology_core::model::{IpNetwork, Labels, Node, parse_range};

use super::address;
use super::report::Report;
use super::{meta, quantity};
use crate::intern::Interner;
use crate::object::ObjectKey;
use object_tree::Field;

/// The taint of a Node that the cluster autoscaler is about to delete.
const AUTOSCALER_TAINT: &str = "ToBeDeletedByClusterAutoscaler";

/// Keeps the labels in `kept`, or all if it is `None`. Every Node with a name is valid, because
/// topology needs only its labels.
pub(crate) fn convert(
    root: &Field<'_>,
    key: &ObjectKey,
    kept: Option<&BTreeSet<Arc<str>>>,
    interner: &mut Interner,
    report: &mut Report,
) -> Node {
    let metadata = root.get("metadata");
    let is_kept = |key: &str| kept.is_none_or(|kept| kept.contains(key));
    let labels = meta::some_texts(&metadata.get("labels"), is_kept, interner, report);
    Node {
        name: key.name.name.clone(),
        labels: labels.into_iter().collect::<Labels>(),
        addresses: addresses(root, report),
        pod_cidrs: pod_cidrs(&root.get("spec"), report),
        cpu_milli: cpu_milli(root, report),
        ready: is_ready(root, report),
        leaving: is_leaving(root, report),
    }
}

/// The ranges of `podCIDRs`, without those that cannot be parsed.
pub(super) fn pod_cidrs(field: &Field<'_>, report: &mut Report) -> Vec<IpNetwork> {
    let listed = field.get("podCIDRs");
    let mut ranges = Vec::new();
    for entry in listed.items(report) {
        ranges.extend(entry.parse_with(
            |text| parse_range(text).ok(),
            "a range of addresses and is skipped",
            "write it as 10.244.1.0/24",
            report,
        ));
    }
    ranges
}

/// `status.allocatable.cpu` in thousandths of a CPU; 0 if missing.
fn cpu_milli(root: &Field<'_>, report: &mut Report) -> u64 {
    let status = root.get("status");
    let allocatable = status.get("allocatable");
    let field = allocatable.get("cpu");
    let Some(text) = field.text(report) else {
        return 0;
    };
    quantity::milli(text).unwrap_or_else(|| {
        let message = format!("`{text}` is not an amount of CPU; the Node counts with 0 CPU");
        report.warn(&field, message, "write it as 4 or 3920m");
        0
    })
}

/// Whether the Node is being deleted, or the cluster autoscaler is about to delete it.
fn is_leaving(root: &Field<'_>, report: &mut Report) -> bool {
    let (metadata, spec) = (root.get("metadata"), root.get("spec"));
    let taints = spec.get("taints");
    let mut keys = taints.items(report);
    metadata.get("deletionTimestamp").text(report).is_some()
        || keys.any(|taint| taint.get("key").text(report) == Some(AUTOSCALER_TAINT))
}

/// The condition `Ready`; a Node without the condition is ready.
fn is_ready(root: &Field<'_>, report: &mut Report) -> bool {
    let status = root.get("status");
    let conditions = status.get("conditions");
    for entry in conditions.items(report) {
        if entry.get("type").text(report) == Some("Ready") {
            return entry.get("status").text(report) == Some("True");
        }
    }
    true
}

/// The internal addresses, then the external ones (KP-NI-01).
fn addresses(root: &Field<'_>, report: &mut Report) -> Vec<IpAddr> {
    let status = root.get("status");
    let listed = status.get("addresses");
    let (mut internal, mut external) = (Vec::new(), Vec::new());
    for entry in listed.items(report) {
        let found = match entry.get("type").text(report) {
            Some("InternalIP") => &mut internal,
            Some("ExternalIP") => &mut external,
            _ => continue,
        };
        found.extend(address::parse(&entry.get("address"), report));
    }
    internal.append(&mut external);
    // A kubelet may write tens of thousands, so a search of all for each would take seconds.
    let mut known = HashSet::new();
    internal.retain(|address| known.insert(*address));
    internal.shrink_to_fit();
    internal
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;
    use std::net::Ipv4Addr;

    use crate::source::{Options, read_text};

    #[test]
    fn kp_ni_01_internal_addresses_come_before_external_ones() {
        let text = "kind: Node\nmetadata: {name: n1}\nstatus:\n  addresses:\n  - {type: ExternalIP, address: 203.0.113.1}\n  \
                    - {type: Hostname, address: n1}\n  - {type: InternalIP, address: 10.0.0.1}\n  \
                    - {type: InternalIP, address: 'fd00::1'}\n  - {type: ExternalIP, address: 10.0.0.1}\n";
        let loaded = read_text("nodes.yaml", text.as_bytes(), &Options::default()).unwrap();
        let node = loaded.snapshot.nodes().next().unwrap();
        let addresses: Vec<String> = node.addresses.iter().map(ToString::to_string).collect();
        assert_eq!(addresses, ["10.0.0.1", "fd00::1", "203.0.113.1"]);
    }

    #[test]
    fn d13_many_addresses_of_a_node_are_kept_once_each_in_linear_time() {
        const MANY: u32 = 100_000;
        let mut text =
            "apiVersion: v1\nkind: Node\nmetadata: {name: n1}\nstatus:\n  addresses:\n".to_owned();
        for number in (0..MANY).chain(0..10) {
            let address = Ipv4Addr::from(0x0a00_0001 + number);
            writeln!(text, "  - {{type: InternalIP, address: {address}}}").unwrap();
        }
        let loaded = read_text("a.yaml", text.as_bytes(), &Options::default()).unwrap();
        let node = loaded.snapshot.node("n1").unwrap();
        assert_eq!(node.addresses.len(), 100_000);
        assert_eq!(node.addresses[0], Ipv4Addr::new(10, 0, 0, 1));
        assert_eq!(
            node.addresses[99_999],
            Ipv4Addr::from(0x0a00_0001 + MANY - 1)
        );
    }
}
