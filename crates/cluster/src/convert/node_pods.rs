//! Converts `PodMap`: the Pods on a Node, by address.

use std::collections::BTreeMap;
use std::net::IpAddr;

use topology_core::model::{NodePods, ObjectName};

use super::custom::sound;
use super::report::Report;
use crate::intern::Interner;
use crate::object::ObjectKey;
use crd::POD_MAP;
use object_tree::Field;

/// Returns `None` if the map is not valid. Skips keys that are no addresses.
pub(crate) fn convert(
    root: &Field<'_>,
    key: &ObjectKey,
    interner: &mut Interner,
    report: &mut Report,
) -> Option<NodePods> {
    let whole = sound(root, &POD_MAP, report)?;
    let whole = Field::root(&whole);
    let spec = whole.get("spec");
    let listed = spec.get("pods");
    let mut pods = BTreeMap::new();
    for text in listed.keys() {
        let field = listed.get(text);
        let Ok(address) = text.parse::<IpAddr>() else {
            let message = format!("`{text}` is not an IP address, and its Pod is skipped");
            report.warn(&field, message, "write an IPv4 or IPv6 address");
            continue;
        };
        let Some((namespace, name)) = field.text(report)?.split_once('/') else {
            continue;
        };
        // The names of Pods differ, so only that of the namespace is shared.
        let pod = ObjectName::new(interner.text(namespace), name);
        pods.insert(address, pod);
    }
    Some(NodePods {
        node: key.name.name.clone(),
        pods,
    })
}
