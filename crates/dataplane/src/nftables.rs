//! Manages one small nftables table named `ipvs-topo` in each of the families `ip`, `ip6` and `arp`.
//!
//! - IPVS takes its packets in the input hook before priority 150. A chain at that priority sees the packets to Service
//!   addresses that no virtual server took. It rejects them (and answers echo requests), so that no process of the host
//!   answers on a Service address.
//! - A nat chain masquerades a pod that reaches itself through its own Service.
//! - The `arp` table keeps the node from answering ARP requests for Service addresses.
//! - If a hard policy asks to drop instead of reject, new connections are dropped before IPVS sees them. Existing
//!   connections continue.
//!
//! `nft -f -` gets one transaction, and only if the kernel's tables differ from the desired ones. When a pod of this
//! node is added or removed, one element of one set changes; that is sent over netlink, without a process. Tables of
//! other programs are never changed.

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

/// Parses arbitrary text as output of `nft -j`.
#[cfg(fuzzing)]
pub fn fuzz(text: &str) {
    let table = observe::ObservedTable::parse(text);
    if let (Ok(one), Ok(other)) = (&table, &observe::ObservedTable::parse(text)) {
        assert_eq!(one, other);
    }
}

#[cfg(test)]
mod tests;
