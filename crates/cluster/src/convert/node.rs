//! `v1` Node: its name, its labels and its internal addresses.

use std::net::IpAddr;

use topology_core::model::{Labels, Node};

use super::address;
use super::field::Field;
use super::meta;
use super::report::Report;
use crate::intern::Interner;
use crate::object::ObjectKey;

/// Converts a Node. Any Node with a name can be used: topology needs only its labels.
pub(crate) fn convert(
    root: &Field<'_>,
    key: &ObjectKey,
    interner: &mut Interner,
    report: &mut Report,
) -> Node {
    let metadata = root.get("metadata");
    let labels = meta::texts(&metadata.get("labels"), interner, report);
    Node {
        name: key.name.name.clone(),
        labels: labels.into_iter().collect::<Labels>(),
        addresses: addresses(root, report),
        cpu_milli: 0,
        ready: true,
    }
}

fn addresses(root: &Field<'_>, report: &mut Report) -> Vec<IpAddr> {
    let status = root.get("status");
    let listed = status.get("addresses");
    let mut found = Vec::new();
    for entry in listed.items(report) {
        if entry.get("type").text(report) != Some("InternalIP") {
            continue;
        }
        let address = address::parse(&entry.get("address"), report);
        found.extend(address.filter(|address| !found.contains(address)));
    }
    found.shrink_to_fit();
    found
}
