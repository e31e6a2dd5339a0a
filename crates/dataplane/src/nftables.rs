//! The nftables side of the data plane: one small table named `ipvs-topo` in `ip`, `ip6` and `arp`.
//!
//! IPVS takes its packets in the input hook before priority 150, so a chain at that priority sees
//! exactly what no virtual server wanted; it refuses it (and answers echo requests) instead of
//! letting a process of the host answer behind a Service address. A nat chain masquerades a pod
//! that reaches itself through its own Service, and the `arp` table keeps the node from claiming
//! Service addresses on its links. Where a hard policy asks for silence instead of a refusal, new
//! connections are dropped before IPVS sees them; those that exist go on.
//!
//! `nft -f -` receives one transaction, and only when the kernel's tables differ. A pod of this node that comes or goes
//! changes one element of one set: that goes over netlink, without a process.
//! Tables of other owners are never named.

mod apply;
mod elements;
mod foreign;
mod generation;
mod observe;
mod render;

use std::collections::BTreeSet;
use std::net::IpAddr;

use topology_core::model::{Cidr, Family, Protocol};

pub use apply::{Nft, NftError, TablesChange};
pub use elements::EndpointDelta;

/// The name of our table in each family, and the mark of its owner.
pub const TABLE: &str = "ipvs-topo";

/// What the tables must hold. Both families together, so that one change is one transaction.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DesiredTables {
    /// Service ranges that have a route; addresses in them need no element of their own.
    pub cidrs: BTreeSet<Cidr>,
    /// Service addresses outside of those ranges.
    pub vips: BTreeSet<IpAddr>,
    /// Addresses of this machine inside `cidrs`: they are left alone.
    pub own: BTreeSet<IpAddr>,
    /// Endpoints on this node: a packet from one of them to itself is masqueraded.
    pub hairpin: BTreeSet<IpAddr>,
    /// Service addresses, protocols and ports to which a new connection gets no answer at all.
    pub silent: BTreeSet<(IpAddr, Protocol, u16)>,
}

/// The families nftables keeps apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum TableFamily {
    /// IPv4 packets.
    Ip,
    /// IPv6 packets.
    Ip6,
    /// Who asks for which IPv4 address on a link.
    Arp,
}

/// Reads any text as what `nft -j` prints.
#[cfg(fuzzing)]
pub fn fuzz(text: &str) {
    let table = observe::Table::parse(text);
    if let (Ok(one), Ok(other)) = (&table, &observe::Table::parse(text)) {
        assert_eq!(one, other);
    }
}

impl TableFamily {
    pub const ALL: [Self; 3] = [Self::Ip, Self::Ip6, Self::Arp];

    /// The word nft uses.
    pub fn word(self) -> &'static str {
        match self {
            Self::Ip => "ip",
            Self::Ip6 => "ip6",
            Self::Arp => "arp",
        }
    }

    /// Whose addresses the family's sets hold.
    fn addresses(self) -> Family {
        match self {
            Self::Ip | Self::Arp => Family::V4,
            Self::Ip6 => Family::V6,
        }
    }
}

/// What has to be sent to nft to get from one state of the tables to another.
#[derive(Debug, PartialEq, Eq)]
pub enum Change {
    /// Nothing: not even a process is started.
    None,
    /// Elements of sets only.
    Elements(String),
    /// Whole tables.
    Replace(String),
}

impl DesiredTables {
    /// The change from `self`, which the kernel holds, to `wanted`.
    pub fn change_to(&self, wanted: &Self) -> Change {
        if self == wanted {
            return Change::None;
        }
        let tables_stay = TableFamily::ALL
            .iter()
            .all(|&f| self.needs(f) == wanted.needs(f));
        if self.cidrs == wanted.cidrs && tables_stay {
            return Change::Elements(render::elements(self, wanted));
        }
        Change::Replace(render::tables(wanted))
    }

    /// Whether `wanted` holds an address that `self` lacks, so that it must be in place before the
    /// virtual servers are.
    pub fn lacks_something_of(&self, wanted: &Self) -> bool {
        let Self {
            cidrs,
            vips,
            own,
            hairpin,
            silent,
        } = wanted;
        !(cidrs.is_subset(&self.cidrs)
            && vips.is_subset(&self.vips)
            && own.is_subset(&self.own)
            && hairpin.is_subset(&self.hairpin)
            && silent.is_subset(&self.silent))
    }

    /// What of `delta` is not so yet.
    pub fn lacks_of(&self, delta: &EndpointDelta) -> EndpointDelta {
        let mut rest = delta.clone();
        rest.added.retain(|pod| !self.hairpin.contains(pod));
        rest.removed.retain(|pod| self.hairpin.contains(pod));
        rest
    }

    /// Takes `delta` in.
    pub fn apply(&mut self, delta: &EndpointDelta) {
        self.hairpin.extend(&delta.added);
        for pod in &delta.removed {
            self.hairpin.remove(pod);
        }
    }

    /// Whether there is a table of the address's family.
    fn has_table_for(&self, address: IpAddr) -> bool {
        match address {
            IpAddr::V4(_) => self.needs(TableFamily::Ip),
            IpAddr::V6(_) => self.needs(TableFamily::Ip6),
        }
    }

    /// Whether the family has any Service address; if not, it gets no table.
    fn needs(&self, family: TableFamily) -> bool {
        let family = family.addresses();
        self.cidrs.iter().any(|cidr| cidr.family() == family)
            || self.vips.iter().any(|vip| Family::of(*vip) == family)
    }
}

#[cfg(test)]
mod tests;
