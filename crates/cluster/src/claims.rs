//! Warns about Nodes that claim an address inside a Service range as their own.
//!
//! A kubelet writes the addresses of its own Node, so such a claim is a mistake in the ranges or an
//! attempt to hijack a Service. Other nodes ignore the address; the operator must know about it.

// A new variant must be handled in each `match`, and not fall under `_`.
#![warn(clippy::wildcard_enum_match_arm)]

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use topology_core::snapshot::Snapshot;

use crate::object::{Kind, ObjectKey};
use crate::unused_policies::FileLine;
use crate::warning::{Code, Warning};

/// The largest number of Nodes with a warning.
const NAMED: usize = 10;

/// Returns a warning for each of the first Nodes, by name, that claim such addresses. `place`
/// returns the file and line of an object, if known.
pub fn warnings(
    snapshot: &Snapshot,
    place: impl Fn(&ObjectKey) -> Option<FileLine>,
) -> Vec<Warning> {
    let mut nodes: BTreeMap<&Arc<str>, Vec<IpAddr>> = BTreeMap::new();
    for (address, node) in snapshot.claims_of_nodes() {
        nodes.entry(node).or_default().push(address);
    }
    let nodes = nodes.into_iter().take(NAMED);
    nodes
        .filter_map(|(node, claimed)| warning(node, &claimed, &place))
        .collect()
}

/// Returns a warning if this Node claims such addresses.
pub fn warning_of(snapshot: &Snapshot, node: &Arc<str>) -> Option<Warning> {
    let addresses = snapshot.node(node)?.addresses.iter().copied();
    let claimed: Vec<IpAddr> = addresses
        .filter(|address| snapshot.is_in_service_cidr(*address))
        .collect();
    warning(node, &claimed, &|_key| None)
}

fn warning(
    node: &Arc<str>,
    claimed: &[IpAddr],
    place: &impl Fn(&ObjectKey) -> Option<FileLine>,
) -> Option<Warning> {
    let first = claimed.iter().min()?;
    let key = ObjectKey::global(Kind::Node, node);
    let (file, line) = place(&key).unwrap_or_default();
    let more = match claimed.len() {
        0 | 1 => String::new(),
        count => format!(" (and {} more)", count - 1),
    };
    let message =
        format!("{first}{more} is inside a Service range; other nodes ignore this address");
    let remedy = "find out why its kubelet reports it, or correct the ServiceCIDR";
    Some(Warning {
        field: "status.addresses".into(),
        code: Code::NodeClaim,
        ..Warning::of_object(&file, line, &key, message, remedy)
    })
}

#[cfg(test)]
mod tests {
    use crate::source::{Options, read_text};

    #[test]
    fn nodes_that_claim_addresses_of_services_are_named_and_their_number_is_bounded() {
        let mut text = "apiVersion: networking.k8s.io/v1\nkind: ServiceCIDR\nmetadata: {name: k}\nspec: {cidrs: [10.96.0.0/12]}\n".to_owned();
        let addresses = "{type: InternalIP, address: 10.96.0.1}, {type: InternalIP, address: 10.96.0.10}, {type: InternalIP, address: 192.0.2.1}";
        for number in 10..30 {
            let own = format!("{{type: InternalIP, address: 10.97.0.{number}}}");
            let all = if number == 10 { addresses } else { &own };
            let node = format!("apiVersion: v1\nkind: Node\nmetadata: {{name: n{number}}}");
            text = format!("{text}---\n{node}\nstatus: {{addresses: [{all}]}}\n");
        }
        let loaded = read_text("a.yaml", text.as_bytes(), &Options::default()).unwrap();
        let words: Vec<String> = loaded.warnings.iter().map(ToString::to_string).collect();
        assert_eq!(words.len(), 10, "{words:#?}");
        assert_eq!(
            words[0],
            "a.yaml:6: Node n10: status.addresses: 10.96.0.1 (and 1 more) is inside a Service range; other nodes \
             ignore this address; find out why its kubelet reports it, or correct the ServiceCIDR"
        );
        assert_eq!(loaded.warnings[0].code.as_str(), "NodeClaim");
        let own = |node: &str| super::warning_of(&loaded.snapshot, &node.into());
        let last = own("n29").expect("a Node beyond those that are named");
        assert!(last.message.starts_with("10.97.0.29 is inside"));
        assert_eq!(own("n30"), None);
    }
}
