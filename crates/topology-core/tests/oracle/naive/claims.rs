//! The addresses that a node does not program because a Node has them.

use std::net::IpAddr;

use topology_core::model::{IpNetwork, Node};

/// Whether the node `me` must not program `address`: a Node has it, and either the address is outside of all Service
/// ranges or that Node is `me`.
pub(crate) fn keeps(nodes: &[Node], ranges: &[IpNetwork], me: &str, address: IpAddr) -> bool {
    nodes
        .iter()
        .filter(|node| node.addresses.contains(&address))
        .any(|node| *node.name == *me || !ranges.iter().any(|range| is_in(range, address)))
}

/// Whether the leading bits are the same.
fn is_in(range: &IpNetwork, address: IpAddr) -> bool {
    let text = |address: IpAddr| match address {
        IpAddr::V4(v4) => format!("{:032b}", v4.to_bits()),
        IpAddr::V6(v6) => format!("{:0128b}", v6.to_bits()),
    };
    let (range_bits, bits) = (text(range.ip()), text(address));
    range_bits.len() == bits.len() && bits.starts_with(&range_bits[..usize::from(range.prefix())])
}
