//! Manages one small nftables table named `ipvs-topo` in each of the families `ip`, `ip6` and `arp`.
//!
//! - IPVS takes its packets in the input hook before priority 150. A chain at that priority sees the packets to Service
//!   addresses that no virtual server took. It rejects them (and answers echo requests), so that no process of the host
//!   answers on a Service address.
//!   Health check ports of load balancers are an exception.
//! - A nat chain masquerades a pod that reaches itself through its own Service.
//! - The same chain masquerades connections to node ports: the endpoint may be on another node, and its replies must
//!   come back through this one. Connections to cluster IPs are masqueraded if the client is not a pod of this node, or
//!   always, or never, as configured.
//! - Packets from outside of the cluster get a firewall mark right before IPVS, if a virtual server has other endpoints for
//!   them, and lose it right behind IPVS. New connections from outside of a Service's source ranges are dropped.
//! - The `arp` table keeps the node from answering ARP requests for Service addresses.
//! - If a hard policy asks to drop instead of reject, new connections are dropped before IPVS sees them. Existing
//!   connections continue.
//!
//! `nft -f -` gets one transaction, and only if the kernel's tables differ from the desired ones. When a pod of this
//! node or a node port is added or removed, single elements of sets change; they are sent over netlink, without a
//! process. So are the elements of new tables. Tables of other programs are never changed.

mod apply;
mod delta;
mod desired;
mod diff;
mod elements;
mod error;
mod family;
mod foreign;
mod forward;
mod generation;
mod legacy;
mod load;
mod observe;
mod observed_elements;
mod options;
mod rules;
mod sets;
mod table;
mod wire;

pub use apply::{Nft, TablesChange};
pub use delta::ElementDelta;
pub use desired::DesiredTables;
pub use error::NftError;
pub use family::TableFamily;
pub use forward::watch_forwarding;
pub use options::{
    ArpRequests, LinkName, Links, LocalPods, Masquerade, ParseLinkNameError, RuleOptions,
};
pub use sets::{Element, SetElement, SetId};
pub use table::TABLE;

/// Parses arbitrary bytes as elements of a set that the kernel lists.
#[cfg(fuzzing)]
pub fn fuzz_elements(payload: &[u8]) {
    observed_elements::fuzz(payload);
}

/// Parses arbitrary bytes as the attributes of a table, a chain, a rule or a set.
#[cfg(fuzzing)]
pub fn fuzz_table(attributes: &[u8]) {
    observe::fuzz(attributes);
}

#[cfg(test)]
mod tests;
