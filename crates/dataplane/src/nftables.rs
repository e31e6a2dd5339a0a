//! The nftables side of the data plane: one small table named `ipvs-topo` in `ip`, `ip6` and `arp`.
//!
//! IPVS takes its packets in the input hook before priority 150, so a chain at that priority sees
//! exactly what no virtual server took; it refuses it (and answers echo requests) instead of
//! letting a process of the host answer behind a Service address. A nat chain masquerades a pod
//! that reaches itself through its own Service, and the `arp` table keeps the node from claiming
//! Service addresses on its links. Where a hard policy asks for silence instead of a refusal, new
//! connections are dropped before IPVS sees them; those that exist go on.
//!
//! `nft -f -` receives one transaction, and only when the kernel's tables differ. A pod that is added to this node or removed from it
//! changes one element of one set: that goes over netlink, without a process.
//! Tables of other owners are never named.

mod apply;
mod desired;
mod diff;
mod elements;
mod foreign;
mod generation;
mod observe;
mod rules;
mod sets;
mod table;

pub use apply::{Nft, NftError, TablesChange};
pub use desired::{DesiredTables, EndpointDelta};
pub use sets::{CIDRS, Element, HAIRPIN, OWN, SILENT, SetRow, VIPS};
pub use table::{TABLE, TableFamily};

/// Reads any text as what `nft -j` prints.
#[cfg(fuzzing)]
pub fn fuzz(text: &str) {
    let table = observe::ObservedTable::parse(text);
    if let (Ok(one), Ok(other)) = (&table, &observe::ObservedTable::parse(text)) {
        assert_eq!(one, other);
    }
}

#[cfg(test)]
mod tests;
