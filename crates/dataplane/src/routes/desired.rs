//! Computes the desired routes for Service addresses.

use std::collections::BTreeSet;
use std::fmt;
use std::net::IpAddr;

use topology_core::model::{Family, IpNetwork};

use super::addresses::{Interface, NodeIps};
use super::range::covers;

/// The protocol number that marks our routes. No routing daemon in `/etc/iproute2/rt_protos` uses it.
pub const PROTOCOL: u8 = 173;

/// A `local` route on `lo` in the table `local`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LocalRoute {
    /// The destination.
    pub to: IpNetwork,
    /// The node's address of the same family. Without it the node itself cannot reach a Service.
    pub source: Option<IpAddr>,
}

impl fmt::Display for LocalRoute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "local {} dev lo table local proto {PROTOCOL}", self.to)?;
        match self.source {
            Some(source) => write!(f, " src {source}"),
            None => Ok(()),
        }
    }
}

/// Why a Service range gets no route.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RangeRefused {
    pub range: IpNetwork,
    /// The address of this node, or the network of a link, that the range contains.
    pub swallows: String,
}

impl fmt::Display for RangeRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { range, swallows } = self;
        write!(
            f,
            "Service range {range} covers {swallows}: it gets no route, each Service address gets its own; \
             correct --service-cidr or the ServiceCIDR object"
        )
    }
}

/// The ranges that may have a route: not inside another range, and without an address or network of this node.
///
/// `own` are the addresses of this node's Node object. Those of other Nodes do not count: each kubelet writes its own,
/// and must not change the routes of other nodes.
pub fn usable_ranges(
    ranges: &[IpNetwork],
    own: &[IpAddr],
    interfaces: &[Interface],
) -> (BTreeSet<IpNetwork>, Vec<RangeRefused>) {
    let mut usable = BTreeSet::new();
    let mut refused = Vec::new();
    for &range in ranges {
        let own = own.iter().find(|address| range.contains(**address));
        let link = interfaces
            .iter()
            .find(|interface| interface.network_overlaps(&range));
        let swallows = match (own, link) {
            (Some(address), _) => Some(format!("{address} of this Node")),
            (None, Some(link)) => Some(format!("the network {link}")),
            (None, None) => None,
        };
        match swallows {
            Some(swallows) => refused.push(RangeRefused { range, swallows }),
            None => drop(usable.insert(range)),
        }
    }
    let all = usable.clone();
    usable.retain(|range| {
        !all.iter()
            .any(|other| other != range && covers(other, range))
    });
    (usable, refused)
}

/// The routes for `ranges` and for Service addresses outside of them.
pub fn desired_routes(
    ranges: &BTreeSet<IpNetwork>,
    vips: impl Iterator<Item = IpAddr>,
    node: &NodeIps,
) -> BTreeSet<LocalRoute> {
    let of_ranges = ranges.iter().map(|range| route(*range, node));
    of_ranges
        .chain(address_routes(ranges, vips, node))
        .collect()
}

/// The routes for Service addresses outside of `ranges`.
pub fn address_routes(
    ranges: &BTreeSet<IpNetwork>,
    vips: impl Iterator<Item = IpAddr>,
    node: &NodeIps,
) -> BTreeSet<LocalRoute> {
    let outside = vips.filter(|vip| !ranges.iter().any(|range| range.contains(*vip)));
    outside
        .map(|vip| route(IpNetwork::from(vip), node))
        .collect()
}

fn route(to: IpNetwork, node: &NodeIps) -> LocalRoute {
    LocalRoute {
        to,
        source: node.of(Family::of_range(&to)),
    }
}

/// Routes that were added and removed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RouteDelta {
    pub added: BTreeSet<LocalRoute>,
    pub removed: BTreeSet<LocalRoute>,
}

impl RouteDelta {
    pub fn is_empty(&self) -> bool {
        self.added.is_empty() && self.removed.is_empty()
    }
}
